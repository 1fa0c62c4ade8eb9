"""Command-line entry point: other programs start an emulator with ``python -m api_client.emulator``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from api_client.emulator.data_folder import EmulatorStartError
from api_client.emulator.fleet.world import DemoScript
from api_client.emulator.server import WORLDS, EmulatorOptions, serve
from api_client.emulator.store.blobs import PRESIGNED_LIFETIME_S


def main(arguments: Sequence[str] | None = None, script: DemoScript | None = None) -> int:
    """Run an emulator with the command-line arguments; return 1 if it cannot start.

    ``script`` replaces the jobs of the demo world.
    """
    parser = argparse.ArgumentParser(prog="api_client.emulator", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, dest="data_dir")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--world", choices=WORLDS, default="demo")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--lifeline-fd", type=int)
    parser.add_argument("--ephemeral", action="store_true", dest="is_ephemeral")
    parser.add_argument("--url-lifetime", type=int, default=PRESIGNED_LIFETIME_S, dest="url_lifetime_s")
    try:
        serve(EmulatorOptions(**vars(parser.parse_args(arguments)), script=script))
    except EmulatorStartError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
