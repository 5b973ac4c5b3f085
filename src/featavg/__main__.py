"""`python -m featavg` is the command `featavg`."""

import sys

from featavg.cli import main

sys.exit(main())
