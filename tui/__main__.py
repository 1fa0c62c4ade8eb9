"""The program: ``bt-tui``, or ``python -m tui``."""

import sys
from typing import NoReturn

from tui.cli import main
from tui.collector import leave_lightly, start_lightly


def run() -> NoReturn:
    """Run the command line of this process and end it with the command's exit code."""
    start_lightly()
    code = main()
    leave_lightly()
    sys.exit(code)


if __name__ == "__main__":
    run()
