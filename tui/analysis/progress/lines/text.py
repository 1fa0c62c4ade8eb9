"""Plain lines: ``step 120/4800 | loss 2.31 | lr 1e-4``, whatever the trainer.

A line is read as a whole: what it counts (``counts``), what it measures (``values``), and its kind. A report
has a count and a measure; a line that evaluates gives an evaluation's loss; settings, sentences, code, errors
and sampled text give nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from tui.analysis.progress.lines.counts import Counts, find_counts
from tui.analysis.progress.lines.reading import NUMBER, ParsedMetrics, to_float, to_step
from tui.analysis.progress.lines.values import Slots, find_slots, read_values, split_numbers
from tui.analysis.progress.lines.vocabulary import meaning, word_set

# Not a report by how the line begins: a shell trace, an assignment, a build log, a stack …
_NO_BEGINNING = re.compile(
    r"\s*(?:#\d+ |export |set |git |curl |select |return |the |figure \d"
    r"|table \d|trial \d|-\s{2,}|new best\b|early[ -]stop|(?:pass|fail)ed |inference |usage:|file \"|frame #"
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
    r"packet loss|stop[ _-]loss|pnl)\b"
)
_SENTENCE_WORDS = word_set(
    "the was were are should has had have we you your that which because still so reach "
    "reached than but got not if when could would must will see only this be until due normal "
    "below above differ differs given our my me"
)
_PERSON_WORDS = word_set(
    "my mine our your yours you i'm we me us he she they please thanks sorry lol hm hmm someone anyone "
    "somebody fyi btw imo yep nope why how what yesterday today tomorrow then again "
    "still says looks seems going wrong nice weird"
)
_IS_OR_OF = re.compile(r"\b(?:(?<!loss )is|(?<!\d )of)\b")
_SETTINGS = re.compile(r"(?:Namespace|Config|Arguments|Args|Params|Settings|Scheduler|LR|Optimizer|AdamW?)\(")
# Text that a model generated or was given.
_SAMPLED = re.compile(
    r"(?:^|[\]\s\"'|])(?:prompt|completion|response|answer|question|assistant|user|human|solution"
    r"|generated(?: text)?)s?[\"']?\s?:|</?think>|<\||\[(?:prompt|completion|response)\]"
    r"|\bsample ?\d*: ?[\"']"
)
_ARITHMETIC = re.compile(r"\b0 ?[-+*/×÷] ?0 ?=(?! [\d.]+%)")
_EVALUATION = re.compile(
    # Headings that say whose loss it is: "| valid |", "[Eval] step 40", "Validation: epoch 3".
    r"^testing at\b|(?:^\s*|[|>] ?|[-*/] |[\[(]|\] |(?<=[a-z]: )|(?<=[a-z_]:)|\binfo\s{1,8})(?:final )?"
    r"(?:valid(?:ation|ate|ating|ator)?|val|eval(?:uation|uating|uator)?|test(?:ing)?|dev|h[eo]ld-?out)"
    r"(?: ?(?:[\])|]|:(?! {0,2}0(?:$|[\s,|])))"
    r"| - | ?\.{3}| set\b| (?:metrics|results?|stats|summary)\b| on '[\w.-]{1,40}' subset"
    r"| (?=(?:loss )?(?:(?:at|after|for|@) )?(?:global[ _])?(?:step|epoch|iter))"
    r"|\. (?=epoch|step|iter)"
    r"|[._][a-z]{2,16}\s{1,40}(?=[a-z_]{2,24}=))"  # structlog's "eval.done   step=3"
    r"|[\s|,(](?:validation|valid|val|eval|evaluation|test|dev)\s?[|,]\s?(?:average |avg |mean )?loss\b"
    # "epoch 3, validation: loss=0.4"; in "val: 0.81" it is only a name.
    r"|(?:[,|]|\d) ?(?:validation|valid|val|eval|test|dev): (?:average |avg |mean )?loss\b"
    r"|\b(?:phase|mode|split|stage|(?:sub|data)?set)[\"']?\s?[:=]\s?[\"']?(?:val|eval|test|dev)"
    r"|\bresults? (?:on|for) (?:the )?(?:val|eval|test|dev)|\bon (?:the )?(?:val\w{0,7}|test|dev) set:"
    r"|\bsaving dict for global step\b"  # TensorFlow's estimators
)
_TRAINING_FIRST = re.compile(  # "Epoch 1 | train | loss 0.4 | val | loss 0.5"
    r"\b(?:epoch|step|iter(?:ation)?)\b[^a-z]{1,16}train(?:ing)?\b"
    r".{1,120}?\b(?:val|valid|validation|eval|test|dev)\b"
)
_BOTH = r"train(?:ing)?(?:, ?| ?/ ?| and | & )(?:val(?:id(?:ation)?)?|test|dev|eval)"
_BOTH_LOSSES = re.compile(  # "train/val loss: 0.4/0.5"
    rf"\b(?:{_BOTH}\)? loss(?:es)?|loss(?:es)? ?\(?{_BOTH}\)?)\s?[:=]?\s?"
    rf"(?P<loss>{NUMBER.lower()})(?:\s?[/,|]\s?|\s)(?P<eval_loss>{NUMBER.lower()})"
)
_WITHIN_VALIDATION = re.compile(
    r"\bvalid on '[\w.-]{1,40}' subset:?\s{1,8}\d+ / \d+ |\b(?:evaluating|validating) \w{0,12} ?\d+ ?/ ?\d+"
    r"|(?:^\s*|\binfo:? )(?:test|val(?:idation)?|eval)\b[^=|]{0,24}\[ *\d+/ *\d+\]"
    r"|\bcv (?:\| )?batch \d+/\d+ "
    r"|\[(?:eval|val|valid|test)\][^=|]{0,24}\[[a-z: ]{0,8}\d+/\d+\]"
)
_EVALUATION_ALONE = re.compile(
    r"^.{0,80}?(?<![\w./=-])(?:(?:valid(?:ation)?|val|eval(?:uation)?|dev|test|held-?out)(?:\.? |_)loss"
    r"|test (?:set|error): (?:average|avg) loss|test set results: loss"
    r"|(?:validating|evaluating) ?\.{3} ?loss|(?:dev|valid|val|test)\s{1,3}: loss(?= \d)"
    r"|(?:validation|valid|val|evaluation|eval)(?: metrics)?(?::| -) ?(?:avg |average |mean )?loss"
    r"|\[(?:valid|val|eval|test|dev)\] loss)"
    rf"(?: {{0,40}}[=:]\s{{0,9}}| )(?P<value>{NUMBER.lower()})(?:$|[,;|]? )"
)
_TRAINING_ALONE = re.compile(
    r"[\s*>]{0,12}(?:average |avg\.? |mean )?train(?:ing)?(?: epoch| metrics:| -|:)?[ _]loss"
    rf"(?: ?[=:]\s{{0,8}}|\s{{1,8}}(?=[\d.]+(?:$|\s+(?:\||(?:(?:test|val|valid|dev)[ _])?(?:acc|loss)))))"
    rf"(?P<value>{NUMBER.lower()})"
    r"(?:$|[,;]?\s(?!\|)|\s{1,4}\|[^|]{1,40}[:=])"
)
_EVALUATION_BESIDE = re.compile(
    r"[\s|,;(](?:val(?:id(?:ation)?)?|eval(?:uation)?|test|dev)\.?[ _]loss ?[=:] ?"
    rf"(?P<value>{NUMBER.lower()})(?:$|[,;|)]|\s)"
)
_EVALUATION_SUMMARY = re.compile(
    r"(?:\bvalidation loss|^\s*(?:validation|evaluation): .{0,120}\btot(?:al)? loss): "
    rf"(?P<value>{NUMBER.lower()})"
)
_ASSIGNMENT = re.compile(r"(?:[A-Za-z]?[a-z]{1,20}: )?\s*\w+ ?= ?\S+\s*$")  # code, or quoted in a chat
_ITERATION_HEADING = re.compile(r"^\s*(?:#+ )?learning iteration \d{1,12}/\d{1,12}(?:\s+#*)?\s*$")  # RSL-RL
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
    r"(?:^|[\]>|)=:.-]\s?|\binfo\s|<)\s{0,8}[\[(<]?\s{0,4}(?:train(?:ing)?[ :]\s?|end of )?(?:global[ _])?"
    r"(?P<what>epoch|it(?:er(?:ation)?)?(?:s(?=:))?|steps?|batch)[\s:=#\[(]{0,10}\d"
    r"(?P<percent> ?\[\s?\d{1,3}%\])?"
)
_MEASURE = re.compile(
    r"(?:loss|reward|acc(?:uracy)?|f1|auc|bleu|psnr|ssim|iou|dice|wer|cer|ppl|perplexity|training error)"
    r"[\w@]{0,16}(?: [a-z]\b)?\s{0,4}[:=]\s{0,8}[\[(]?\d"
)
_TIME = re.compile(r"\b(?:time(?: cost| elapsed| taken)?|cost)\s{0,4}[:=]\s{0,4}\d|\btook \d")
_SETTING = re.compile(
    r"\b(?:batch[ _]?size|bs|optim(?:izer)?|weight[ _]?decay|wd|seed|dropout|hidden|gamma|patience|betas"
    r"|config|epochs|warmup)\b"
)
_STEP_RATE = re.compile(r"\b(?:steps?|iter(?:ation)?s?|batch(?:es)?)/s(?:ec)?\s?[:=]")
_ITEMS = re.compile(r"[,|;\t]|\s{2,}")
_PAIR = re.compile(r"(?:iter|step|batch) 0|[a-z][\w ()/@.%-]{0,30}[:=]\s?-?\d\S{0,12}")
_LOSSES = re.compile(r"\blosses: ?\[")
_MONITORED = re.compile(
    r"\bepoch \d{1,9}, global step \d{1,12}: '?[\w./-]{1,60}'? (?:reached|was not in top)\b"
)
_NAMED_NUMBER = re.compile(r"[a-z)] ?[:=] ?\d")
_UNDER_WAY = re.compile(r"\b(?:eta|elapsed|remaining|left)\b")
_METRIC_LINE = re.compile(
    rf"^\s*(?:(?:Train|Eval)\s+)?(?P<name>[A-Za-z_][\w.-]*(?:/[\w. ()-]+)+)\s?[=:]"
    rf"\s?(?P<value>{NUMBER})\s*$"
)
_BULLETS = ("•", "*", "-", "|")
_BULLET = re.compile(
    r"^(?:\s*[•*]|\s+-|\s*\| >) (?P<name>(?:Avg |Mean )?Loss|(?:avg_)?loss|current_lr|grad_norm"
    r"|Grad(?:ient)? Norm|E2E \(Tokens/sec/gpu\)): "
    rf"(?P<value>{NUMBER})(?: {{1,4}}\(\S{{1,24}}\))?\s*$"
)
_ROW = re.compile(
    rf"^\s*(?:│ |\|\s{{4}})(?P<name>[A-Za-z_/]{{4,40}})\s{{2,}}(?:\| )?\s*(?P<value>{NUMBER})\s*[│|]\s*$"
)
_NARROW_ROW = re.compile(rf"\|\s*(?P<name>[a-z_/]{{4,40}})\s*\|\s*(?P<value>{NUMBER})\s*\|\s*$")
_ROW_COUNTS = ("training_iteration", "total_timesteps")
_ROW_LOSSES = word_set(
    "loss train_loss training_loss train/loss total_loss val_loss eval_loss valid_loss "
    "validation_loss test_loss"
)
_IN_BLOCK = re.compile(
    r"(?:[\d: .,-]{19,32})?\W{0,12}(?P<name>[A-Za-z][\w /-]{0,40}?)\"?\s{0,8}(?:[:=]\s{0,8}|\s)"
    rf"(?P<value>{NUMBER}),?\s*$"
)
_LONGEST_ALONE = 160
_LOGGER = re.compile(  # a time, brackets, a level, a module, a number
    r"(?>\[?\d{2,4}[-/:][\d:.,t/+z -]{5,32}\]?|\[[^\]]{1,80}\]|(?:info|debug|root)\b:?|[a-z_]\w*(?:\.\w+)++"
    r"|\d{1,9}: |\d{1,4} (?=train)|[-:|>\s]){0,16}+"
)
_HEADING = re.compile(
    r"(?:\[epoch=(?P<epoch>\d{1,9})(?:/\d{1,9})?\])?"
    r"\[(?:step|batch|iteration|iter)=(?P<step>\d[\d,]{0,14})/(?P<total>\d[\d,]{0,14})"
    r"(?:,\s?epoch=(?P<epoch2>\d{1,9}))?(?:,\s?\w{1,20}=[^,\]]{1,24}(?:days?, [\d:]{1,12})?){0,4}\]:?\s*$"
    r"|={5,200} Step (?P<step2>\d{1,12})/(?P<total2>\d{1,12}) ={5,200}\s*$"
    r"|^(?:─{5,200} Step|[*=#-]{3,200} "
    r"(?i:(?:\[\S{1,60}\] - )?(?:train(?:ing)? |metrics )step|iteration)) #?(?P<step3>\d{1,12})"
    r" [─*=#-]{3,200}\s*$"
    r"|^(?:Epoch|EPOCH) {1,2}(?P<epoch3>\d{1,9}):?\s*$"
)
_SAMPLES = re.compile(
    rf"^loss: (?P<loss>{NUMBER}) {{1,4}}\[ *\d{{1,12}}/ *\d{{1,12}}\]\s*$"
)  # PyTorch tutorials
_BATCH_SIZE = re.compile(r"\bglobal batch size: {1,8}(?P<size>\d{1,9}) ")  # Megatron-LM
_BOX = re.compile(r"^\s*[│┃║]")


class _LineKind(NamedTuple):
    """The kind of a line by its text, whatever its numbers are."""

    is_report: bool
    evaluates: bool
    under_way: bool
    has_reward: bool
    has_measure: bool
    counts_first: bool
    has_part: bool
    slots: Slots


@lru_cache(maxsize=4096)
def _kind(texts: tuple[str | None, ...]) -> _LineKind:
    units = ("", *texts[1::2])
    text = "0".join(f"{unit or ''}{rest or ''}" for unit, rest in zip(units, texts[::2], strict=True))
    lowered = text.lower()
    slots = find_slots(texts)
    evaluates = _may_evaluate(lowered) or "saving dict" in lowered
    is_report = (
        (slots.marked or bool(slots.values))
        and is_log_report(text, marked=slots.marked)
        and not (
            "time (ms)" in lowered
            or _SAMPLED.search(lowered)
            or _SETTINGS.search(text)
            or _ARITHMETIC.search(text)
            or (evaluates and _WITHIN_VALIDATION.search(lowered))
        )
    )
    return _LineKind(
        is_report=is_report,
        evaluates=evaluates
        and _EVALUATION.search(lowered) is not None
        and _TRAINING_FIRST.search(lowered) is None,
        under_way=_UNDER_WAY.search(lowered) is not None,
        has_reward=_REWARD.search(lowered) is not None,
        has_measure=not evaluates
        and (_MEASURED_STEP.search(lowered) is not None or _STEP_RATE.search(lowered) is not None),
        counts_first=_counts_first(lowered, slots),
        has_part=not evaluates and _MEASURE.search(lowered) is not None,
        slots=slots,
    )


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
    if first["what"] == "epoch" and (_TIME.search(lowered, first.end()) or _is_pairs(lowered[first.end() :])):
        return _SETTING.search(lowered) is None
    return scheduled and not first["what"].startswith("step") and _SETTING.search(lowered) is None


def _is_pairs(text: str) -> bool:
    """Return True if a text is nothing but names with their values."""
    items = [item.strip() for item in _ITEMS.split(text) if item.strip()]
    return len(items) > 1 and all(_PAIR.fullmatch(item) for item in items)


def read(text: str) -> ParsedMetrics | None:
    """Parse a line of text; ``None`` if it reports no progress."""
    if len(text) < _LONGEST_ALONE:
        alone = _read_alone(text)
        if alone is not None:
            return alone
    if "{'" in text or _BOX.match(text):
        return None
    lowered = text.lower()
    cut = lowered.find("[valid]") if "[train] " in lowered else -1
    if cut > 0:
        return _read_both(text, cut)
    counts = find_counts(text, lowered)
    if counts is None:
        return _without_count(text, lowered)
    if "learning iteration" in lowered and _ITERATION_HEADING.match(lowered):
        return ParsedMetrics(step=counts.step, total_steps=counts.total)
    texts, numbers = split_numbers(text)
    kind = _kind(texts)
    if not kind.is_report:
        return _monitored(counts, lowered)
    known: dict[str, Any] = dict(read_values(kind.slots, numbers))
    both = _BOTH_LOSSES.search(lowered) if "train" in lowered else None
    if both is not None:
        known |= {name: to_float(value) for name, value in both.groupdict().items()}
    if not known.keys() - {"epoch"}:
        return _monitored(counts, lowered) or _count_alone(counts, kind, lowered)
    if kind.evaluates and "loss" in known and "eval_loss" not in known:
        known["eval_loss"] = known.pop("loss")
    if "eval_loss" in known and "loss" not in known:
        # An evaluation's speed is not the run's.
        known = {name: value for name, value in known.items() if name in ("eval_loss", "learning_rate")}
    elif kind.evaluates and "epoch" in lowered:
        return None
    if "samples_per_s" not in known and known.get("step_time_s", 0) > 0 and "global batch size" in lowered:
        batch = _BATCH_SIZE.search(lowered)
        if batch is not None:
            known["samples_per_s"] = int(batch["size"]) / known["step_time_s"]
    if kind.evaluates and "epoch" in lowered and " steps: " in lowered:
        counts = replace(counts, step=None)  # the evaluation's
    if counts.step is None and counts.within is None:
        known.pop("step_time_s", None)  # the epoch's
    known |= {name: value for name, value in counts.fields().items() if value is not None}
    reading = ParsedMetrics(**known)
    # A scheduler's configuration has a step and a learning rate, but no "120/4800".
    scheduled = counts.step is not None and counts.total and "learning_rate" in known
    if scheduled or is_training_metrics(reading):
        return reading
    if kind.counts_first and "learning_rate" in known:
        return reading
    return _count_alone(counts, kind, lowered)


def _read_both(text: str, cut: int) -> ParsedMetrics | None:
    """Parse a line with the means of an epoch in two sections: ``[train] loss=0.4, [valid] loss=0.5``."""
    reading = read(text[:cut])
    texts, numbers = split_numbers(text[cut:])
    evaluated = read_values(find_slots(texts), numbers).get("loss")
    return None if reading is None else replace(reading, eval_loss=evaluated)


def _monitored(counts: Counts, lowered: str) -> ParsedMetrics | None:
    """Parse Lightning's message about the score that it monitors: the line counts, whatever the score is."""
    if ", global step " not in lowered or _MONITORED.search(lowered) is None:
        return None
    return ParsedMetrics(step=counts.step, epoch=counts.epoch)


def _count_alone(counts: Counts, kind: _LineKind, lowered: str) -> ParsedMetrics | None:
    """Return the count of a line whose measures are none of ours: a reward, an accuracy, the time left."""
    if kind.counts_first and not kind.evaluates:
        return ParsedMetrics(**counts.fields())
    if (
        counts.within is not None
        and (counts.epochs or "time" in lowered)
        and counts.within[0] <= counts.within[1]
    ):
        return ParsedMetrics(**counts.fields())
    if counts.step is None and counts.epochs and len(_NAMED_NUMBER.findall(lowered)) > 1:
        return ParsedMetrics(**counts.fields())  # rl_games
    if counts.step is None or (counts.total and counts.step > counts.total):
        return None
    rewarded = kind.has_reward and (counts.total or "global_step=" in lowered)
    if rewarded or kind.has_measure or (counts.total and (kind.under_way or kind.has_part)):
        return ParsedMetrics(step=counts.step, total_steps=counts.total)
    return None


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
    if "</" in text:
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


def is_training_metrics(reading: ParsedMetrics) -> bool:
    """Return True if the reading is about training: a loss, or a step with a measure.

    A step and a learning rate are not enough, because a scheduler's configuration has both. A step's
    duration is enough if the line has the total number of steps.
    """
    if reading.loss is not None or reading.eval_loss is not None:
        return reading.step is not None or reading.epoch is not None or reading.epoch_step is not None
    timed = reading.step_time_s if reading.total_steps else None
    # A game counts frames per second, and a service its items.
    trains = reading.total_steps or reading.epoch is not None or reading.learning_rate is not None
    samples = reading.samples_per_s if trains else None
    # A solver's iterations have a gradient's norm too, but no learning rate and no end.
    norm = reading.grad_norm if reading.total_steps or reading.learning_rate is not None else None
    measured = (norm, reading.tokens_per_s, samples, timed)
    return reading.step is not None and any(value is not None for value in measured)


def _may_evaluate(lowered: str) -> bool:
    return (
        "val" in lowered
        or "test" in lowered
        or "dev" in lowered
        or "held" in lowered
        or "hold" in lowered
        or "cv" in lowered
    )


def _without_count(text: str, lowered: str) -> ParsedMetrics | None:
    if text.startswith("loss: "):
        samples = _SAMPLES.match(text)
        return None if samples is None else ParsedMetrics(loss=to_float(samples["loss"]))
    if len(text) < _LONGEST_ALONE and "loss" in lowered and "lr" in lowered:
        known = _values(text)
        is_setting = _SETTING.search(lowered) is not None and "averaged stats:" not in lowered
        if known.keys() >= {"loss", "learning_rate"} and not (is_setting or known["loss"].is_integer()):
            return ParsedMetrics(**known)  # type: ignore[arg-type]
    # "loss 0.38, train acc 0.86, test acc 0.84"; "Episode: 12, reward: 41.0, loss: 0.412"
    if lowered.startswith(("loss", "episode", "ep ")) and ("train" in lowered or "reward" in lowered):
        return _measure({"loss": _values(text).get("loss")})
    bare = _LOGGER.sub("", lowered, count=1) if "train" in lowered else lowered
    if bare.lstrip(" \t*>").startswith(("train", "average train", "avg", "mean train")):
        alone = _TRAINING_ALONE.match(bare)
        if alone is None or _ASSIGNMENT.match(text) or not is_log_report(text, marked=False):
            return None
        beside = _EVALUATION_BESIDE.search(bare, alone.end("value"))
        evaluated = None if beside is None else to_float(beside["value"])
        return ParsedMetrics(loss=to_float(alone["value"]), eval_loss=evaluated)
    if "loss" not in lowered or not _may_evaluate(lowered) or not is_log_report(text, marked=True):
        return None
    if _SAMPLED.search(lowered) or _SETTINGS.search(text):
        return None
    alone = _EVALUATION_ALONE.match(lowered) if lowered.count("loss") == 1 else None
    alone = alone or _EVALUATION_SUMMARY.search(lowered)
    if alone is not None and (_ASSIGNMENT.match(text) or not is_log_report(text, marked=False)):
        return None
    value = None if alone is None else to_float(alone["value"])
    return None if not value or value.is_integer() else ParsedMetrics(eval_loss=value)  # val_loss = 0 is code


def _values(text: str) -> dict[str, float]:
    texts, numbers = split_numbers(text)
    kind = _kind(texts)
    return read_values(kind.slots, numbers) if kind.is_report and not kind.evaluates else {}


def _read_alone(text: str) -> ParsedMetrics | None:
    """Parse trainers that print a heading with the step and then a line for each value.

    MosaicML Composer: ``[epoch=1/3][batch=120/4800]:``, then ``Train loss/train/total: 2.3012``.
    OLMo: ``[step=120/739328,epoch=0,eta=5h11m]``, then ``train/CE loss=2.812``.
    NeMo RL: ``========== Step 12/500 ==========``, then ``• Loss: 0.0123``.
    Ray Train: a frame with rows ``│ training_iteration   3 │``.
    Stable-Baselines3: ``|    loss   | 0.0123  |``.
    """
    heading = None
    if text.startswith(("─", "***", "===", "###", "---", "Epoch ", "EPOCH ")) or (
        "/" in text and text.rstrip(": ").endswith(("]", "="))
    ):
        heading = _HEADING.search(text)
    if heading is not None:
        if heading["step3"] or heading["epoch3"]:
            return _measure({"step": to_step(heading["step3"]), "epoch": to_float(heading["epoch3"])})
        step, total = (
            to_step(heading["step"] or heading["step2"]),
            to_step(heading["total"] or heading["total2"]),
        )
        if step is None or not total or step > total:
            return None
        return ParsedMetrics(step=step, total_steps=total, epoch=to_float(heading["epoch2"]))
    row = _ROW.match(text) if text.rstrip().endswith(("│", "|")) else None
    if row is not None:
        name = row["name"].lower()
        if name in _ROW_COUNTS:
            return _measure({"step": to_step(row["value"])})
        return _named(name, row["value"]) if name in _ROW_LOSSES else None
    match = _METRIC_LINE.match(text) if "/" in text else None
    if match is None and text.lstrip()[:1] in _BULLETS:
        match = _BULLET.match(text)
    return None if match is None else _named(match["name"], match["value"])


def read_in_block(text: str) -> ParsedMetrics | None:
    """Parse a line with a loss or a learning rate alone, below a heading with the epoch."""
    match = _IN_BLOCK.match(text) if "oss" in text or "lr" in text or "rate" in text else None
    if match is None and "oss" in text and _is_pairs(text.lower()):
        return _measure({"loss": _values(text).get("loss")})
    reading = None if match is None or "." not in match["value"] else _named(match["name"], match["value"])
    measures = (reading.loss, reading.eval_loss, reading.learning_rate) if reading is not None else ()
    return reading if any(value is not None for value in measures) else None


def read_row(text: str) -> ParsedMetrics | None:
    """Parse a row of a table that its logger framed: ``| grad_norm | 0.21 |``, as of the baselines."""
    row = _NARROW_ROW.match(text)
    if row is None:
        return None
    if row["name"] == "step":
        return _measure({"step": to_step(row["value"])})
    return _named(row["name"], row["value"]) if row["name"] in _ROW_LOSSES | {"grad_norm"} else None


def _named(name: str, value: str) -> ParsedMetrics | None:
    known = meaning(name)
    if known is None or known.field in ("step", "epoch", "total_steps", "step_time_s"):
        return None
    number = to_float(value)
    return None if number is None else _measure({known.field: number * known.scale})


def _measure(fields: dict[str, Any]) -> ParsedMetrics | None:
    return ParsedMetrics(**fields) if any(value is not None for value in fields.values()) else None
