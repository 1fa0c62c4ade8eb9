"""Entry point of ``bt-tui`` and ``python -m tui``."""

import gc
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Run the process's command line and exit with the command's exit code."""
    gc.set_threshold(200_000)  # a start makes many objects and no garbage; looking for it takes a tenth of it
    try:
        from tui.cli import main  # takes long enough for a ctrl-c
    except KeyboardInterrupt:
        sys.exit(130)
    code = main()
    gc.freeze()  # else the exiting interpreter looks for garbage, a seventh of the time of `bt-tui jobs`
    sys.exit(code)


if __name__ == "__main__":
    run()
