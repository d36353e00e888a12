"""`python -m oversmoothing`."""

import sys

from oversmoothing import main

sys.exit(main())
