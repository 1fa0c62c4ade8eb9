"""What kind of line a text is: a report, an evaluation, or settings, prose, code, an error, sampled text.

Numbers play no part in it, so that the kind is decided once for all lines that differ in their numbers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from tui.analysis.progress.lines.reading import NUMBER
from tui.analysis.progress.lines.values import Slots, find_slots, read_values, split_numbers
from tui.analysis.progress.lines.vocabulary import word_set

# Not a report by how the line begins: a shell trace, an assignment, a build log, a stack …
_NO_BEGINNING = re.compile(
    r"\s*(?:#\d+ |\([\"']|export |set |git |curl |select |return |the |figure \d"
    r"|table \d|trial \d|simulation |-\s{2,}|new best\b|early[ -]stop|(?:pass|fail)ed |inference |usage:"
    r"|(?:lr[ _-]?find\w*|sweep|search\w*|calibrat\w*|benchmark\w*|decod\w*|generated|prefill|schedule)\b"
    r"|file \"|frame #"
    r"|(?:run |hyp\w*[ -]?|training )?(?:config\w*|settings?|param(?:eter)?s|arg(?:ument)?s|options|hyp)\s?:"
    r"|raise |assert |e   |-{1,2}\w|\w+ = \S{1,40}; ?\w+ = |\w+ = (?!tensor|array)\w+\(|\S+\.py::)"
)
# … by who says it: "<bob> …", "@bob: …", "bob -> #ml: …", "[2024-03-01 12:04] bob: …" (a logger prints
# seconds), a quotation, a diff, a list of things to do, a subtitle …
_SPEAKER = re.compile(
    r"\s*(?:[\[(]?\d[\d:.,t -]{2,24}[\])]?\s+)?(?:<@?[a-z][\w.-]{0,30}>\s|@[a-z]\S{0,30} |[\w.-]{1,30} -> #)"
    r"|\s*\[?(?:(?:[\d./-]{2,10}[ t])?\d+:\d+(?: ?[ap]m)?\]? "
    r"|[\d./-]{2,10}, \d+:\d+(?::\d+)?(?: ?[ap]m)?(?:\]| -) (?:(?!train|eval|test|info)[a-z]\w{1,20} )?)"
    r"(?!info|debug|warn|train|epoch|step|iter|loss|val|eval|test)[a-z][\w.-]{1,20}(?:#\d{1,4})?: "
    r"|\s*(?:(?:in|out) ?\[\d+\]|[qa]|[a-z][\w.-]{1,20} (?:said|wrote)): "  # a notebook, an interview
    r"|\s*[\"'][^\"']{1,200}[\"'],?\s*$"
    r"|\s*(?://|/\*|<!--|[$%>#] ?(?=[\w.])|\+\s{0,20}(?=[\w.])|@@ |[*+-] \[[ x]\]\s)"
    r"|.{0,24}\d --> \d"
)
_ASKS = re.compile(r"\w\?(?:\s|[\"']|$)")
# … an exception by name, a call with a string argument, flags of a command …
_EXCEPTION = re.compile(r"\b[A-Z][a-z]\w{0,60}(?:Error|Exception|Warning)\b")
_CALL = re.compile(r"\w\(f?[\"']")
_QUERY = re.compile(r"[?&]\w+=")
_FLAG = re.compile(r"\s--[a-z][\w-]{1,40}[= ]")
# … or a verb about a step other than completing it.
_BEST_SO_FAR = re.compile(
    r"^\W*best: |(?:^\W*|- |\] )best (?:checkpoint|model|run|trial|epoch|step|val)"
)  # an earlier value
_QUOTED = re.compile(r"`[^`]{0,80}\d[^`]{0,80}`")  # code in a text
_ROLLED_BACK = re.compile(r"\broll(?:ed|ing) back\b")
_WORD = re.compile(r"\w+")
_NO_REPORT = re.compile(
    r"(?=[flrwegps])\b(?:load(?:ed|ing)|resum(?:ed?|ing)|restor(?:ed|ing)|retry(?:ing)?|"
    r"found|wait(?:ed|ing)(?! for batch)|revert(?:ed|ing)|rewound|expect(?:ed|ing)?|recommend(?:ed)?|goal|"
    r"packet loss|stop[ _-]loss|pnl|profits?|(?:pass|fail)ed(?=\W{0,4}$))\b"
)
_SENTENCE_WORDS = word_set(
    "the was were are should has had have we you your that which because still so reach "
    "reached than but got not if when could would must will see only this be until due normal "
    "below above differ differs given our my me "
    "der die das ist war und nicht est dans pour avec del los con por para com"
)
_PERSON_WORDS = word_set(
    "my mine our your yours you i'm we me us he she they please thanks sorry lol hm hmm someone anyone "
    "somebody fyi btw imo yep nope why how what yesterday today tomorrow then again "
    "still says looks seems going wrong nice weird"
)
_IS_OR_OF = re.compile(r"\b(?:(?<!loss )is|(?<!\d )(?<!\bend )of)\b")
SETTINGS = re.compile(r"(?:Namespace|Config|Arguments|Args|Params|Settings|Scheduler|LR|Optimizer|AdamW?)\(")
# Text that a model generated or was given.
SAMPLED = re.compile(
    r"(?:^|[\]\s\"'|])(?:prompt|completion|response|answer|question|assistant|user|human|solution"
    r"|generated(?: text)?)s?[\"']?\s?:|</?think>|<\||\[(?:prompt|completion|response)\]"
    r"|\bsample ?\d*: ?[\"']"
)
_ARITHMETIC = re.compile(r"\b0 ?[-+*/×÷] ?0 ?=(?! [\d.]+%)")
_EVALUATION = re.compile(
    # Headings that say whose loss it is: "| valid |", "[Eval] step 40", "Validation: epoch 3".
    r"^testing at\b|(?:^\s*|^[iwe] |[|>]\s{0,4}|[-*/] |[\[(]|\] |(?<=[a-z]: )|(?<=[a-z_]:)"
    r"|\b(?:info|debug)\s{1,8})(?:final )?"
    r"(?:valid(?:ation|ated?|ating|ator)?|val|eval(?:uation|uated?|uating|uator)?|test(?:ing)?|dev|cv|h[eo]ld-?out)"
    r"(?:\s{0,3}(?:[\])|]|:(?! {0,2}0(?:$|[\s,|])))"
    r"| - | \(\d+/\d+\)|, (?=[a-z_ ]{2,16}[:=])| ?\.{3}"
    r"| set\b| (?:metrics|results?|stats|summary)\b| on '[\w.-]{1,40}' subset"
    r"| (?=(?:loss )?(?:(?:at|after|for|of|@) )?(?:global[ _])?(?:step|epoch|iter)(?!s =))"
    r"|\. (?=epoch|step|iter)"
    r"|[._][a-z]{2,16}\s{1,40}(?=[a-z_]{2,24}=))"  # structlog's "eval.done   step=3"
    r"|[\s|,(](?:validation|valid|val|eval|evaluation|test|dev)\s?[|,]\s?(?:average |avg |mean )?loss\b"
    # "epoch 3, validation: loss=0.4"; in "val: 0.81" it is only a name.
    r"|(?:[,|]|\d) ?(?:validation|valid|val|eval|test|dev): (?:(?:average |avg |mean )?loss\b|[a-z_]{1,16}=)"
    r"|[,|] ?(?:validation|valid|val|eval|test) (?:step|iter|batch)\s?[:=]"
    r"|\b(?:phase|mode|split|stage|(?:sub|data)?set(?: used)?)[\"']?\s?[:=]\s?[\"']?(?:val|eval|test|dev)"
    r"|\bresults? (?:on|for) (?:the )?(?:val|eval|test|dev)|\bon (?:the )?(?:val\w{0,7}|test|dev) set:"
    r"|\bsaving dict for global step\b"  # TensorFlow's estimators
)
_WITHIN_VALIDATION = re.compile(
    r"\bvalid on '[\w.-]{1,40}' subset:?\s{1,8}\d+ / \d+ |\b(?:evaluating|validating) \w{0,12} ?\d+ ?/ ?\d+"
    r"|(?:^\s*|\binfo:? |\] )(?:test|val(?:idation)?|eval)\b[^=|]{0,24}(?<!epoch)(?<!epoch )\[ *\d+/ *\d+\]"
    r"|\bcv (?:\|[^|]{1,40})?(?:\| ?)?batch \d+/\d+ "
    r"|\[(?:eval|val|valid|test)\][^=|]{0,24}\[(?!epoch)[a-z: ]{0,8}\d+/\d+\]"
)
_OF_LAYER = re.compile(r"\b(?:layer|module|block)[\s:=#]{1,3}(?:\d|[a-z_]+\.[a-z_.]+)")
_REWARD = re.compile(
    rf"\b(?:mean|average|avg)?[ _]?(?:episod(?:e|ic)_)?(?:reward|return)s?(?:/mean)?\s?[:=]"
    rf"\s{{0,4}}\[?{NUMBER.lower()}"
)
_MEASURED_STEP = re.compile(
    # A line that begins with its step and names another measure: "Step 00250 | Validation bpb: 1.1012".
    r"(?:^|- |\] )\s*(?:global[ _])?(?:step|iteration|iter)s?[ :=]{1,3}\d[\d,]{0,14} ?[|:,] ?"
    r"[a-z][\w @/-]{0,30}"
    r"\b(?:bpb|ppl|perplexity|metric|acc|accuracy|f1|wer|cer|psnr|reward|return|score)\s?[:=] ?\d"
)
_COUNT_FIRST = re.compile(
    # A line that begins with what it counts, after a prefix of its logger: "INFO: [x][epoch: 3, iter: 100, …"
    r"(?:^|[\]>|)=:.*-]\s?|\binfo\s|<)\s{0,8}[\[(<]?\s{0,4}"
    r"(?:(?:start(?:ing)? )?train(?:ing)?[ :]\s?|end of )?(?:global[ _])?"
    r"(?P<what>epoch|it(?:er(?:ation)?)?(?:s(?=:))?|steps?|batch)[\s:=#\[(]{0,10}\d(?:/\d)?"
    r"(?P<percent> ?\[\s?\d{1,3}(?:\.\d{1,3})?%\])?"
)
_MEASURE = re.compile(
    r"(?:loss|reward|acc(?:uracy)?|f1|auc|bleu|psnr|ssim|iou|dice|wer|cer|ppl|perplexity|training error)"
    r"[\w@]{0,16}(?: [a-z]\b)?\s{0,4}[:=]\s{0,8}[\[(]?\d"
)
_TIME = re.compile(r"\b(?:time(?: cost| elapsed| taken)?|cost)\s{0,4}[:=]\s{0,4}\d|\btook \d")
SETTING = re.compile(
    r"\b(?:batch[ _]?size|bs|optim(?:izer)?|weight[ _]?decay|wd|seed|dropout|hidden|gamma|patience|betas"
    r"|config|epochs|warmup|scheduler|grad(?:ient)?[ _]?clip(?:ping)?|imgsz|momentum)\b"
    r"|\bwarmup_|\b(?:lr|init)_(?:init|lr)\b"
)
_STEP_RATE = re.compile(r"\b(?:steps?|iter(?:ation)?s?|batch(?:es)?)/s(?:ec)?\s?[:=]")
_ITEMS = re.compile(r"[,|;\t]|\s{2,}")
_PAIR = re.compile(r"(?:iter|step|batch) 0|[a-z][\w ()/@.%-]{0,30}[:=]\s?-?\d\S{0,12}")
_LOSSES = re.compile(r"\blosses: ?\[")
_UNDER_WAY = re.compile(r"\b(?:eta|elapsed|remaining|left)\b")


class LineKind(NamedTuple):
    """The kind of a line by its text, whatever its numbers are."""

    is_report: bool
    evaluates: bool
    within_evaluation: bool
    under_way: bool
    has_reward: bool
    has_measure: bool
    counts_first: bool
    has_part: bool
    slots: Slots


@lru_cache(maxsize=4096)
def kind_of(texts: tuple[str | None, ...]) -> LineKind:
    units = ("", *texts[1::2])
    text = "0".join(f"{unit or ''}{rest or ''}" for unit, rest in zip(units, texts[::2], strict=True))
    lowered = text.lower()
    slots = find_slots(texts)
    evaluates = may_evaluate(lowered) or "saving dict" in lowered
    is_report = (
        (slots.marked or bool(slots.values))
        and is_log_report(text, marked=slots.marked)
        and not (
            "time (ms)" in lowered
            or SAMPLED.search(lowered)
            or SETTINGS.search(text)
            or _ARITHMETIC.search(text)
            or _OF_LAYER.search(lowered)
        )
    )
    within_evaluation = is_report and evaluates and _WITHIN_VALIDATION.search(lowered) is not None
    return LineKind(
        is_report=is_report and not within_evaluation,
        evaluates=evaluates and _EVALUATION.search(lowered) is not None,
        within_evaluation=within_evaluation,
        under_way=_UNDER_WAY.search(lowered) is not None,
        has_reward=_REWARD.search(lowered) is not None,
        has_measure=_MEASURED_STEP.search(lowered) is not None
        or (not evaluates and _STEP_RATE.search(lowered) is not None),
        counts_first=_counts_first(lowered, slots),
        has_part=not evaluates and _MEASURE.search(lowered) is not None,
        slots=slots,
    )


def report_values(text: str) -> dict[str, float]:
    texts, numbers = split_numbers(text)
    kind = kind_of(texts)
    return read_values(kind.slots, numbers) if kind.is_report and not kind.evaluates else {}


def _counts_first(lowered: str, slots: Slots) -> bool:
    """Return True if a line begins with its count and reports a learning rate, or a measure by its name."""
    if _LOSSES.search(lowered):
        return True
    first = _COUNT_FIRST.search(lowered)
    if first is None or not _SENTENCE_WORDS.isdisjoint(_WORD.findall(lowered)):
        return False
    scheduled = any(slot.field == "learning_rate" for slot in slots.values)
    if first["what"] == "batch":
        return scheduled
    if first["percent"] or _MEASURE.search(lowered, first.end()):
        return True
    if first["what"] == "epoch" and (_TIME.search(lowered, first.end()) or is_pairs(lowered[first.end() :])):
        return SETTING.search(lowered) is None
    return scheduled and SETTING.search(lowered) is None


def is_pairs(text: str) -> bool:
    """Return True if a text is nothing but names with their values."""
    items = [item.strip() for item in _ITEMS.split(text) if item.strip()]
    return len(items) > 1 and all(_PAIR.fullmatch(item) for item in items)


def is_log_report(text: str, *, marked: bool) -> bool:
    """Return True if a line with a step and a value reports them.

    ``marked``: an equals sign or a colon separates a name from its value, as in no sentence. Without one,
    words typical of sentences make the line prose.
    """
    lowered = text.lower()
    if is_spoken(lowered) or _NO_BEGINNING.match(lowered) or _NO_REPORT.search(lowered):
        return False
    if ("Error" in text or "Exception" in text or "Warning" in text) and _EXCEPTION.search(text):
        return False
    if (("('" in text or '("' in text or "(f" in text) and _CALL.search(lowered)) or (
        "--" in text and _FLAG.search(lowered)
    ):
        return False
    if "</" in text or ("&" in text and _QUERY.search(text)):
        return False
    if "back" in lowered and _ROLLED_BACK.search(lowered):
        return False
    if "`" in lowered and _QUOTED.search(lowered):
        return False
    if "best" in lowered and _BEST_SO_FAR.search(lowered):
        return False
    return marked or (
        _SENTENCE_WORDS.isdisjoint(_WORD.findall(lowered)) and _IS_OR_OF.search(lowered) is None
    )


def is_spoken(lowered: str) -> bool:
    """Return True if a person says or asks the lowercase text: a chat, a subtitle, a question."""
    return (
        ("?" in lowered and _ASKS.search(lowered) is not None)
        or _SPEAKER.match(lowered) is not None
        or not _PERSON_WORDS.isdisjoint(word.strip(",.;:!\"'()") for word in lowered.split())
    )


def may_evaluate(lowered: str) -> bool:
    return (
        "val" in lowered
        or "test" in lowered
        or "dev" in lowered
        or "held" in lowered
        or "hold" in lowered
        or "cv" in lowered
    )
