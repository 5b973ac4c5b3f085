"""`python -m featavg` is the command `featavg`."""

import sys

from featavg.apps.cli.start import main

sys.exit(main())
