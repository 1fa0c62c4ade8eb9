"""``python <this folder>``: run one rank, without loading the packages around it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

if __name__ == "__main__":
    # Python put this folder first; its parent goes last, so that no neighbour there hides a standard
    # module (there is one called platform).
    sys.path = [entry for entry in sys.path if not entry or Path(entry).resolve() != FOLDER]
    sys.path.append(str(FOLDER.parent))
    sys.exit(importlib.import_module(f"{FOLDER.name}.train").main())
