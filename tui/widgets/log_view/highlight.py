"""Light highlighting of a line: names of values, and bars, step back; numbers and paths stand out."""

from __future__ import annotations

import re
from functools import lru_cache

_PARTS = re.compile(
    r"(?P<bar>[█▉▊▋▌▍▎▏░▒▓━╺╸]+|\#{3,})"
    r"|(?P<path>(?:[a-z0-9]{1,10}:/|(?<![\w.]))/[\w.@+~-]+(?:/[\w.@+~-]+)+)"
    r"|(?P<name>'[\w./ -]{1,60}':|\"[\w./ -]{1,60}\":|\b[A-Za-z_][\w./-]{0,60}=(?=[\w\"'.(\[{-])|\bINFO\b)"
    r"|(?P<number>(?<![\w.])[-+]?\d{1,30}(?:[.,]\d{1,30}){0,6}(?:e[-+]?\d{1,4})?(?![\w.]))"
)

Part = tuple[int, int, str]
"""Begin, end and kind of a part of a text."""


@lru_cache(maxsize=2048)
def highlights(text: str) -> tuple[Part, ...]:
    """Return the parts to style, in order, without overlaps."""
    return tuple((*match.span(), match.lastgroup or "") for match in _PARTS.finditer(text))
