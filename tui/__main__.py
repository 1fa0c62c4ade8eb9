"""Entry point of ``bt-tui`` and ``python -m tui``."""

from typing import NoReturn

from tui.cli import main
from tui.system.process import collect_rarely, exit_fast


def run() -> NoReturn:
    """Run the process's command line and exit with the command's exit code."""
    collect_rarely()
    exit_fast(main())


if __name__ == "__main__":
    run()
