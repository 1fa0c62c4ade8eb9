"""Entry point of ``bt-tui`` and ``python -m tui``."""

import gc
import sys
from typing import NoReturn


def run() -> NoReturn:
    """Run the process's command line and exit with the command's exit code."""
    # Startup allocates many objects but no garbage; collections would take 10% of the time.
    gc.set_threshold(200_000)
    try:
        from tui.cli import main  # slow enough that users may press ctrl-c meanwhile
    except KeyboardInterrupt:
        sys.exit(130)
    code = main()
    gc.freeze()  # skips the collection at exit, which takes a seventh of the time of `bt-tui jobs`
    sys.exit(code)


if __name__ == "__main__":
    run()
