"""The parts of the documentation that are made from the code.

``PYTHONPATH=. python tests/docs/generated.py`` makes them anew; tests compare them.
"""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = REPOSITORY / "docs"

_EXAMPLE = re.compile(r"<!-- examples/(\w+\.py) -->\n(?:```python\n.*?```\n)?", re.DOTALL)


def library_guide(guide: str) -> str:
    """The guide with every example as its file is now."""

    def shown(match: re.Match[str]) -> str:
        source = (REPOSITORY / "examples" / match[1]).read_text(encoding="utf-8")
        return f"<!-- examples/{match[1]} -->\n```python\n{source}```\n"

    return _EXAMPLE.sub(shown, guide)


def main() -> None:
    """Write them."""
    for name, make in {"library.md": library_guide}.items():
        path = DOCUMENTS / name
        path.write_text(make(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
