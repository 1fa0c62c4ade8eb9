"""``python -m tui`` is ``bt-tui``."""

import sys

from tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
