"""``python -m longtail``, the same as the command ``longtail``."""

import sys

from longtail.cli import main

if __name__ == "__main__":  # a started worker imports this file, too
    sys.exit(main())
