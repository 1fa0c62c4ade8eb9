"""Headings that name an epoch or a step: ``Epoch 3/10``, ``3/50epoch started``, ``Step 470/64000``."""

from __future__ import annotations

import re

from tui.analysis.progress.lines.counts import find_counts
from tui.analysis.progress.lines.kinds import is_spoken
from tui.analysis.progress.lines.reading import ParsedMetrics, to_step

_BEFORE = re.compile(  # what a logger prints, decoration, and that something begins
    r"(?:(?P<prefix>.{0,120}?(?:[]>*=|#-]|\d:|\b(?:info|root|main|train|trainer|training):)) "
    r"|.{0,80}?\binfo:[\w.]{1,40}:|[idwe] )?[\s=*#~<>+_-]*"
    r"(?P<verb>(?:now )?(?:start(?:ing|ed)?|begin(?:ning)?|enter(?:ing)?|running|current|train(?:ing)?)"
    r"(?:(?: the)? train(?:ing)?)?(?: of| for)? |global )?(?:[\[(] ?)?",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"epoch(?:(?P<colon>: {0,4})|-| {0,4}[\[(]?)(?:# ?)?(?P<epoch>\d{1,6})"
    r"(?:(?: ?/ ?| of )(?P<epochs>\d{1,6})|, rank: \d{1,5})?(?: ?[\])])?"
    r"(?P<state> (?:train(?:ing)? )?(?:start(?:s|ed)?|beg[aiu]ns?|end(?:s|ed)?|finished|completed?|done)\b"
    r"(?:[.:!]| (?:at |in )?[\d:. T-]{1,32}s?)?)?"
    r"[\s=*#~<>+_-]{0,80}:?(?:\s?\.{3})?[\s=*#~<-]{0,80}(?: \[[\d: -]{8,20}\][\s|(:.\d)]{0,40})?$",
    re.IGNORECASE,
)
_NUMBER_FIRST = re.compile(r"\b(?P<epoch>\d{1,6})/(?P<epochs>\d{1,6}) ?epoch started\b")
_STEP = re.compile(
    r"(?:step|iter(?:ation)?):? {0,4}#?(?P<step>\d[\d,]{0,14})"
    r"(?:(?: ?/ ?| of )(?P<total>\d[\d,]{0,14})\]?[\s=*#~<-]{0,80}:?"
    r"|[ ,|]{1,3}tokens?:? [\d.,]{1,20} ?[kmbgt]?)\s*$",
    re.IGNORECASE,
)
_BOTH = re.compile(  # "Epoch 3 | Step 100"; with colons and no total it may be settings
    r"epoch[ :=#]{0,3}[\[(]?\d{1,6}(?: ?/ ?\d{1,6})?[\])]?[ ,|;:-]{1,4}[\[(]?(?:global |train )?"
    r"(?:step|iter(?:ation)?|batch)[ :=#]{0,3}[\[(]?\d{1,12}(?: ?/ ?\d{1,12})?[\])]?[ .:=*-]{0,80}$",
    re.IGNORECASE,
)
_FEW_STEPS = 100  # of an installation, a recipe
_OTHER_STEPS = re.compile(
    r"(?i)infer|sampl|denois|diffus|generat|eval|val(?:id|\b)|test|load|build|install|warm|stage"
)
_DECORATED = (">", "=", "*", "#", "-")
_BULLETS = ("*", "#", "-")  # "# epoch: 20": a setting
_NO_HEADING = re.compile(
    r"(?i)\b(?:best|resum\w*|load\w*|restor\w*|from|stop\w*|last|start_epoch"
    # what services and file systems count
    r"|controller|leader|broker|partition|quorum|raft|osd\w*|consensus|validator|ledger|block(?:chain)?|slot)\b"
)
_CHARACTERS = 96
_LONGEST = 240


def read(text: str) -> ParsedMetrics | None:
    """Parse a line that is nothing but a heading with an epoch or a step."""
    if len(text) > _LONGEST:
        return None
    start = max(0, len(text) - _CHARACTERS)
    end = text[start:].lower()
    if "epoch" not in end:
        return _read_step(text, start) if "step" in end or "iter" in end else None
    first = _NUMBER_FIRST.search(text) if "epoch started" in text else None
    if first is not None:
        return ParsedMetrics(epoch=float(first["epoch"]), total_epochs=float(first["epochs"]))
    if "step" in end or "iter" in end or "batch" in end:
        return _read_both(text, start)
    heading = _EPOCH.search(text, start)
    before = None if heading is None else _BEFORE.fullmatch(text, 0, heading.start())
    if heading is None or before is None or _NO_HEADING.search(text):
        return None
    if before["verb"] or heading["state"]:
        if is_spoken(text.lower()):
            return None
    elif not heading["epochs"] and not _is_bare(before["prefix"], heading):
        return None
    if heading["epochs"] is None:
        return ParsedMetrics(epoch=float(heading["epoch"]))
    number, epochs = int(heading["epoch"]), int(heading["epochs"])
    if number > epochs or not epochs:
        return None
    whole = max(0, number - 1)
    return ParsedMetrics(epoch=float(whole), total_epochs=float(epochs), whole_epochs=whole)


def _read_both(text: str, start: int) -> ParsedMetrics | None:
    both = _BOTH.search(text, start)
    if both is None or _BEFORE.fullmatch(text, 0, both.start()) is None:
        return None
    if _OTHER_STEPS.search(text) or _NO_HEADING.search(text):
        return None
    if "/" not in both[0] and (":" in both[0] or "=" in both[0]):
        return None
    counts = find_counts(both[0], both[0].lower())
    return None if counts is None else ParsedMetrics(**counts.fields())


def _read_step(text: str, start: int) -> ParsedMetrics | None:
    heading = _STEP.search(text, start)
    if heading is None or _BEFORE.fullmatch(text, 0, heading.start()) is None or _OTHER_STEPS.search(text):
        return None
    step, total = to_step(heading["step"]), to_step(heading["total"])
    if step is None or (total is not None and not max(step, _FEW_STEPS) <= total):
        return None
    return ParsedMetrics(step=step, total_steps=total)


def _is_bare(prefix: str | None, heading: re.Match[str]) -> bool:
    """Return True for an epoch that is a heading by itself: "epoch: 90" may be a setting."""
    if heading["colon"] is None:
        return prefix is None or not prefix.endswith("|") or "info" in prefix.lower()
    text, at = heading.string, heading.start()
    if prefix is not None or text[max(0, at - 1)] == "[":
        return prefix is None or (prefix.endswith(_DECORATED) and prefix.strip() not in _BULLETS)
    # print("epoch: ", epoch) makes two spaces.
    return (text[at] == "E" and text[:at].strip() == text[:at]) or heading["colon"] == ":  "
