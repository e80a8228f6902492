"""`python -m looplatch`: the command line."""

import sys

from looplatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
