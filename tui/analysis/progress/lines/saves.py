"""Lines that report that a checkpoint was or is being saved, and its name.

Such a line has a verb of saving outside of its paths, and the object of the verb: a word for a model, or a
path of a checkpoint or of a file of weights. It is not a save if the verb is negated or in the future, or if
something else is saved, such as a plot.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tui.analysis.progress.lines.reading import ParsedMetrics

_VERB = re.compile(
    r"\b(?:sav(?:ed|ing)|wrote|writ(?:ing|ten)|stor(?:ed|ing)|dump(?:ed|ing)|snapshotting)\b"
    r"|\bsave [\w ]{1,24}:|\bsave "
)
_MODEL = re.compile(
    r"\b(?:checkpoint|ckpt|model|models|weights|adapters?|param(?:eter)?s|policy|agent|network|snapshot|lora|ema"
    r"|pipeline|optimizer|states?)\b|\bsav(?:ing|ed) (?:at|for) (?:step|epoch|iteration)\b"
    r"|\bcheckpoints for \d|/\.(?:pth?|safetensors)\b"
)
_FORMATS = (
    "checkpoint policy after step",  # LeRobot
    "local_global_step_folder:",  # verl
    "> checkpoint : ",  # Coqui TTS
    "is ready now!",  # DeepSpeed
    "checkpoint successfully created",  # Ray Train
    "checkpoint_saved",
    "checkpoint save :",  # NeMo
)
"""Texts of trainers that report a save without a verb of saving."""

_PATH = re.compile(
    r"(?<![\w.@=+/\\-])(?:(?:[a-z0-9]{1,12}:/)?[\w.@=+-]*+(?:[/\\]++[\w.@=+-]++)++|\w[\w=-]*+(?:\.[\w=-]++)++)",
    re.IGNORECASE,
)
_CHECKPOINT_NAME = re.compile(
    r"(?<![a-z])(?:checkpoint|ckpt|global_step|step|iter|epoch)[-_=]?\d[\w=-]*|(?<=checkpoints/)\d+",
    re.IGNORECASE,
)
_OTHER_TIME = re.compile(
    r"\b(?:load|resum|restor|delet|remov|skip|fail|error|unable|not\b|will\b|would|should|could|can\b|every|interval"
    r"|before|when|ensure|convert|using (?![\d/])|about to|version|kept\b|(?:you|we|your|my)\b|\bi(?= [a-z])"
    r"|[a-z]warning:|def\b|assert|(?:sav|writ)ing [^|]*%\|)|\(f?[\"']|^\s*(?:#|//)"
)
_OTHER_THING = re.compile(
    r"\b(?:\w*results?\b|samples?\b|predictions?|images?|figure|plot|video|metrics\b|logs?\b|data|feature|embed|shards"
    r"|tokenizer|settings|config|summary|inputs?|outputs?\b(?! dir)"
    r"|gradient|memory|activation)|\.(?:onnx|json|ya?ml|txt|csv|png|log)\b"
)
_STEP = re.compile(
    r"(?<!best )(?<!best at )(?<!last )(?<![\w./=-])(?P<name>step|iter|iteration|update|total_iters)s?"
    r"[ :=#]{1,8}(?P<step>\d[\d,]*+)(?:/\d++)?(?![\w/-]|\.\w)"
    r"|(?:\bafter|\bat|@) (?P<after>\d[\d,]*) \w*\s?(?:step|iteration|update)s\b"
    r"|\bcheckpoints for (?P<of>\d+) into\b"
)


def mentions_save(text: str) -> bool:
    lowered = text.lower()
    return _VERB.search(lowered) is not None or any(text in lowered for text in _FORMATS)


def read(text: str) -> ParsedMetrics | None:
    """Return the name and the step of the checkpoint that a line says was saved; None for other lines.

    The name may be empty.
    """
    lowered = text.lower()
    paths = _PATH.findall(text)
    text_without_paths = _PATH.sub(lambda path: f"/{PurePosixPath(path[0]).suffix}", lowered)
    verb = _VERB.search(text_without_paths)
    is_model = _MODEL.search(text_without_paths) or _CHECKPOINT_NAME.search(text)
    saves = verb is not None and is_model and (verb[0] != "save " or any("/" in path for path in paths))
    if not saves and not any(text in lowered for text in _FORMATS):
        return None
    if _OTHER_TIME.search(text_without_paths) or _OTHER_THING.search(text_without_paths):
        return None
    step = _STEP.search(lowered)
    number = None if step is None else _number(step)
    return ParsedMetrics(checkpoint=_name(text, paths)[:120], step=number)


def _number(step: re.Match[str]) -> int:
    return int((step["step"] or step["after"] or step["of"]).replace(",", ""))


def _name(text: str, paths: list[str]) -> str:
    components = [
        part for path in paths for part in re.split(r"[/\\]", path) if _CHECKPOINT_NAME.search(part)
    ]
    if components:
        stem = components[0].rpartition(".")[0]
        return stem if _CHECKPOINT_NAME.fullmatch(stem) else components[0].rstrip(".")
    if name_match := _CHECKPOINT_NAME.search(text):
        return name_match[0]
    step_match = _STEP.search(text.lower())
    if step_match is not None and step_match["name"] in ("step", "iteration"):
        # Megatron-LM names the directory of iteration 4000 iter_0004000.
        is_step = step_match["name"] == "step"
        return f"step-{_number(step_match)}" if is_step else f"iter_{_number(step_match):07d}"
    folders = [path for path in paths if "/" in path and not path[:4].isdecimal()]  # no date
    return max(folders, key=len, default="").rstrip("/.").rpartition("/")[2]
