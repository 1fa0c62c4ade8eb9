"""Entry point of ``bt-tui`` and ``python -m tui``."""

from typing import NoReturn

from tui.cli import main
from tui.system.process import leave, start_lightly


def run() -> NoReturn:
    """Run the process's command line and exit with the command's exit code."""
    start_lightly()
    leave(main())


if __name__ == "__main__":
    run()
