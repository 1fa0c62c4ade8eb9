"""Check that the generated parts of the documentation match the code."""

from __future__ import annotations

import pytest
from generated import DOCUMENTS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_generated_parts_match_the_code(name: str) -> None:
    """``PYTHONPATH=. python tests/docs/generated.py`` rewrites them."""
    page = (DOCUMENTS / name).read_text(encoding="utf-8")
    assert PAGES[name](page) == page
