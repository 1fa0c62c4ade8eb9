"""Headings that name an epoch: ``Epoch 3/10`` (Keras), ``Start epoch 3``, ``3/50epoch started`` (ESPnet)."""

from __future__ import annotations

import re

from tui.analysis.progress.lines.kinds import is_spoken
from tui.analysis.progress.lines.reading import ParsedMetrics

_PREFIX = (  # of a logger
    r"(?:(?P<prefix>.{0,120}?(?:[]>*=|#-]|\d:|\b(?:info|root|main|train|trainer|training):)) "
    r"|.{0,80}?\binfo:[\w.]{1,40}:|[idwe] )?"
)
_VERB = (
    r"(?P<verb>(?:now )?(?:start(?:ing|ed)?|begin(?:ning)?|enter(?:ing)?|running|train(?:ing)?)"
    r"(?:(?: the)? train(?:ing)?)?(?: of| for)? )?"
)
_STATE = (
    r"(?P<state> (?:train(?:ing)? )?(?:start(?:s|ed)?|beg[aiu]ns?|end(?:s|ed)?|finished|completed?|done)\b"
    r"(?:[.:!]| (?:at |in )?[\d:. T-]{1,32}s?)?)?"
)
_HEADING = re.compile(
    rf"^{_PREFIX}[\s=*#~>-]*{_VERB}\[?epoch(?P<colon>: {{0,4}})?(?(colon)| {{0,4}})#?(?P<epoch>\d{{1,6}})"
    rf"(?:(?: ?/ ?| of )(?P<epochs>\d{{1,6}})|, rank: \d{{1,5}})?\]?{_STATE}"
    r"[\s=*#~<-]{0,80}:?(?:\s?\.{3})?[\s=*#~<-]{0,80}(?: \[[\d: -]{8,20}\][\s|(:.\d)]{0,40})?$",
    re.IGNORECASE,
)
_NUMBER_FIRST = re.compile(r"\b(?P<epoch>\d{1,6})/(?P<epochs>\d{1,6}) ?epoch started\b")
_DECORATED = (">", "=", "*", "#", "-")
_NO_HEADING = re.compile(
    r"(?i)\b(?:best|resum\w*|load\w*|restor\w*|from|stop\w*|last|start_epoch"
    # what services and file systems count
    r"|controller|leader|broker|partition|quorum|raft|osd\w*|consensus|validator|ledger|block(?:chain)?|slot)\b"
)
_CHARACTERS = 96


def read(text: str) -> ParsedMetrics | None:
    """Parse a line that is nothing but a heading with an epoch."""
    if "epoch" not in text[-_CHARACTERS:].lower():
        return None
    heading = _NUMBER_FIRST.search(text) if "epoch started" in text else None
    if heading is not None:
        return ParsedMetrics(epoch=float(heading["epoch"]), total_epochs=float(heading["epochs"]))
    heading = _HEADING.match(text)
    if heading is None or _NO_HEADING.search(text):
        return None
    if heading["verb"] or heading["state"]:
        if is_spoken(text.lower()):
            return None
    elif not heading["epochs"] and not _is_bare(heading):
        return None
    if heading["epochs"] is None:
        return ParsedMetrics(epoch=float(heading["epoch"]))
    number, epochs = int(heading["epoch"]), int(heading["epochs"])
    if number > epochs or not epochs:
        return None
    whole = max(0, number - 1)
    return ParsedMetrics(epoch=float(whole), total_epochs=float(epochs), whole_epochs=whole)


def _is_bare(heading: re.Match[str]) -> bool:
    """Return True for an epoch that is a heading by itself: "epoch: 90" may be a setting."""
    prefix = heading["prefix"]
    if heading["colon"] is None:
        return prefix is None or not prefix.endswith("|") or "info" in prefix.lower()
    if prefix is not None:
        return prefix.endswith(_DECORATED)
    # print("epoch: ", epoch) makes two spaces.
    return heading.string.startswith("Epoch") or heading["colon"] == ":  "
