"""Run one rank as ``python <this folder>``, without importing the parent packages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

if __name__ == "__main__":
    # Python put this folder first on the path. Its parent goes last, so that no sibling module hides a
    # standard one (there is one called platform).
    sys.path = [entry for entry in sys.path if not entry or Path(entry).resolve() != FOLDER]
    sys.path.append(str(FOLDER.parent))
    sys.exit(importlib.import_module(f"{FOLDER.name}.train").main())
