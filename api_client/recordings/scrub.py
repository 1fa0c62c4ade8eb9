"""Remove secrets from text that is written to a recording: keys, tokens, presigned queries, passwords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

REMOVED = "[removed]"
MIN_SECRET_CHARACTERS = 8

_NOTHING = re.compile(r"None|null|true|false|True|False|[\d.,eE+-]*")
_WORDS = re.compile(rf"[A-Za-z_./:|-]*|{_NOTHING.pattern}")
"""``pad_token = unk``, ``eos_token: 128001``: names and numbers are not credentials."""
_ASSIGNED = r"""((?:\\{0,2}["'])?\s{0,4}[=:]\s{0,4}(?:\\{0,2}["'])?)([^\s"'\\,;&<>]{4,4000})"""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Removes what ``pattern`` finds, or its third group, unless that is ``harmless``.

    A text without any of the ``words``, in lower case, is not searched: it would take twenty times as long.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    harmless: re.Pattern[str] | None = None

    def apply(self, text: str, lowered: str) -> str:
        if not any(word in lowered for word in self.words):
            return text
        return self.pattern.sub(self._replaced, text)

    def _replaced(self, found: re.Match[str]) -> str:
        if self.harmless is None:
            return REMOVED
        return found[0] if self.harmless.fullmatch(found[3]) else found[1] + found[2] + REMOVED


_SIGNED = r"(?:X-(?:Amz|Goog|Emulator)-[A-Za-z-]{0,40}|Signature|AWSAccessKeyId|Key-Pair-Id|[?&]sig)"
_KEYS = r"api[_-]?key|access[_-]?key|secret|passw(?:or)?d"
_RULES: tuple[_Rule, ...] = (
    _Rule(
        ("x-amz-", "x-goog-", "x-emulator-", "signature", "awsaccess", "key-pair-id", "sig="),
        re.compile(rf"{_SIGNED}=[^\s\"'\\&<>]{{1,4000}}"),
    ),
    _Rule(("hf_",), re.compile(r"hf_[A-Za-z0-9]{16,200}")),
    _Rule(("sk-",), re.compile(r"sk-(?<![A-Za-z0-9]sk-)[A-Za-z0-9_-]{16,300}")),
    _Rule(("gho_", "ghp_", "ghr_", "ghs_", "ghu_"), re.compile(r"gh[oprsu]_[A-Za-z0-9]{20,255}")),
    _Rule(("github_pat_",), re.compile(r"github_pat_[A-Za-z0-9_]{20,255}")),
    _Rule(("akia", "asia"), re.compile(r"A(?:KIA|SIA)[A-Z0-9]{16}")),
    _Rule(("xox",), re.compile(r"xox[abeprs]-[A-Za-z0-9-]{10,255}")),
    _Rule(("eyj",), re.compile(r"eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}")),
    _Rule(
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^\"]{0,8000}?-----END [A-Z ]{0,30}PRIVATE KEY-----"
        ),
    ),
    _Rule(
        ("bearer", "api-key"),
        re.compile(r"(bearer|api-key)(\s{1,4})([A-Za-z0-9._~+/=-]{8,4000})", re.IGNORECASE),
        _WORDS,
    ),
    _Rule(
        ("key", "secret", "passw"),
        re.compile(rf"({_KEYS}){_ASSIGNED}", re.IGNORECASE),
        _NOTHING,
    ),
    _Rule(
        ("_token", "-token", "authorization"),
        re.compile(rf"([_-]token|authorization){_ASSIGNED}", re.IGNORECASE),
        _WORDS,
    ),
)
_NEVER = re.compile(r"(?!)")


class Scrubber:
    """Replaces secrets in text by ``[removed]``.

    ``values`` are known secrets; of ``names``, assigned values are removed (``NAME=value``). Other tokens
    are recognized by their form.
    """

    def __init__(self, values: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        known = {one for one in values if len(one) >= MIN_SECRET_CHARACTERS and not one.isdigit()}
        self._values = sorted(known, key=len, reverse=True)
        own = sorted({name for name in names if len(name) > 1}, key=len, reverse=True)
        self._rules = _RULES
        if own:
            pattern = re.compile(rf"({'|'.join(map(re.escape, own))}){_ASSIGNED}")
            self._rules += (_Rule(tuple(name.lower() for name in own), pattern, _NEVER),)

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, REMOVED)
        lowered = text.lower()
        for rule in self._rules:
            text = rule.apply(text, lowered)
        return text


def secrets_of_environment(environ: Mapping[str, str]) -> list[str]:
    """Return the values of variables that hold keys, tokens and passwords."""
    is_secret: Callable[[str], object] = re.compile(r"(?i)(key|token|secret|passw)").search
    return [value for name, value in environ.items() if is_secret(name)]
