"""Run a script written for the official SDK without installing the SDK.

::

    python -m api_client.run_script SCRIPT [ARGUMENT…]

The SDK's import names (``truss_train``, ``truss.base.truss_config`` …) resolve to ours, ``push``
included, so that scripts that submit jobs run unchanged. In your own code, import :func:`api_client.push`
instead.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from api_client.programmatic import push
from api_client.submission.config_file.stand_ins import official_modules


def main(arguments: Sequence[str]) -> int:
    """Run the script named by the arguments, as ``python SCRIPT …`` would."""
    if not arguments or not Path(arguments[0]).is_file():
        print("usage: python -m api_client.run_script SCRIPT [ARGUMENT…]", file=sys.stderr)  # noqa: T201
        return 2  # the exit code of shells for wrong usage
    script = arguments[0]
    sys.modules.update(official_modules(push))
    sys.argv = list(arguments)
    sys.path[0] = str(Path(script).absolute().parent)
    runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
