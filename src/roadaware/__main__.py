"""`python -m roadaware` is `roadaware`."""

import sys

from roadaware.cli import main

if __name__ == "__main__":
    sys.exit(main())
