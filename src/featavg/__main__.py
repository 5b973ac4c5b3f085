"""`python -m featavg` is the command `featavg`."""

import sys

from featavg.apps.cli.main import main

sys.exit(main())
