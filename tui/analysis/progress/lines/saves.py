"""Lines that report that a checkpoint was or is being saved, and its name.

Such a line has a verb of saving in its own words, and what is saved: a model in words, or a path with the
name of a checkpoint or of a file of weights. Another thing, or another time, rules it out.
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
_NAMED = re.compile(
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
    own = _PATH.sub(lambda path: f"/{PurePosixPath(path[0]).suffix}", lowered)
    verb = _VERB.search(own)
    is_model = _MODEL.search(own) or _NAMED.search(text)
    saves = verb is not None and is_model and (verb[0] != "save " or any("/" in path for path in paths))
    if not saves and not any(text in lowered for text in _FORMATS):
        return None
    if _OTHER_TIME.search(own) or _OTHER_THING.search(own):
        return None
    step = _STEP.search(lowered)
    number = None if step is None else _number(step)
    return ParsedMetrics(checkpoint=_name(text, paths)[:120], step=number)


def _number(step: re.Match[str]) -> int:
    return int((step["step"] or step["after"] or step["of"]).replace(",", ""))


def _name(text: str, paths: list[str]) -> str:
    components = [part for path in paths for part in re.split(r"[/\\]", path) if _NAMED.search(part)]
    if components:
        stem = components[0].rpartition(".")[0]
        return stem if _NAMED.fullmatch(stem) else components[0].rstrip(".")
    if named := _NAMED.search(text):
        return named[0]
    counted = _STEP.search(text.lower())
    if counted is not None and counted["name"] in ("step", "iteration"):
        # Megatron-LM names the directory of iteration 4000 iter_0004000.
        is_step = counted["name"] == "step"
        return f"step-{_number(counted)}" if is_step else f"iter_{_number(counted):07d}"
    folders = [path for path in paths if "/" in path and not path[:4].isdecimal()]  # no date
    return max(folders, key=len, default="").rstrip("/.").rpartition("/")[2]
