"""The program: ``bt-tui``, or ``python -m tui``."""

from typing import NoReturn

from tui.cli import main
from tui.system.process import leave, start_lightly


def run() -> NoReturn:
    """Run the command line of this process and end it with the command's exit code."""
    start_lightly()
    leave(main())


if __name__ == "__main__":
    run()
