"""Messages of most trainers that a checkpoint was or is being saved."""

from __future__ import annotations

import re

from tui.analysis.progress.lines.kinds import is_spoken
from tui.analysis.progress.lines.reading import ParsedMetrics

# Most match lowercase text, which is several times faster than ignoring case.
_SAVING = re.compile(
    r"\b(?:sav(?:ing|ed)|wrote|writing|stor(?:ing|ed)|successfully saved|finished saving)\b[^/{]{0,60}?"
    r"\b(?:checkpoint|ckpt|global_step)",
)
_SAVING_MODEL = re.compile(
    r"\bsav(?:ing|ed) (?:(?:the|new|best|current|latest|final|validating) ){0,4}(?:model|adapter|weights)"
    r"(?: with loss [\d.]{1,20})?(?: weights| file)?(?: and runtime parameters"
    r"| and optimizer state at (?:iteration|epoch) \d{1,12})?"
    r" (?:to|in|at)\b:?|\bsave weights to [^\s]{0,400}/|\bsnapshotting to \S|\bsaving current best: \S"
    r"|\bsaving (?:the )?(?:new |best |latest )?model ?(?:\.{2,3}|\()"
    r"|\bsaved? (?:best )?model: [^\s]{0,400}\."
    r"|\bsave checkpoint: \S|\bsave model (?:in|to) [^\s]{0,400}/|\bsaving models and training states\b"
    r"|\bsave (?:to checkpoint|checkpoint to) [^\s]{0,400}\d"
    r"|\bsav(?:ing|ed) (?:the )?state (?:to|in|at) [^\s]{0,400}(?:check|ckpt|step|epoch|iter)"
    r"|\bmodel saved (?:to|in|at) [^\s]{0,400}/"
    r"|\bsav(?:ing|ed) (?:[\w-]+ ){1,3}(?:model|weights|state dict|state) (?:to|in|at) \S{0,400}[/.]"
    r"|\bsav(?:ing|ed) (?:the )?(?:new )?best model\b|\bsaving gaussians$"
    r"|\bsaving at (?:step|epoch|iteration) \d"
    r"|\bsaved? the (?:agent|policy|learner) (?:to|in|at) \S|\bsaving checkpoints?\s?\.{2,3}$"
    r"|\bcheckpoint(?:ed|ing)? (?:the )?(?:policy|model|state) (?:after|at) (?:step|iteration|epoch) \d",
)
_SAVED_AFTER = re.compile(
    r"\bcheckpoint save : .{0,40}?\biteration: \d"  # NeMo
    r"|\bcheckpoint\b.{0,160}?\b(?:saved|is ready now|written|finalized successfully)\b"
    r"|\bcheckpoint (?:successfully )?created at\b"
    r"|\b(?:weights|ckpt|snapshot) saved (?:to|in|at) \S|\bbest model saved\b"
    r"|^\W*model saved[.!]?\s*$",
)
_ANNOUNCED = re.compile(
    # Future or past saves: "every 500 steps", "saving checkpoints to …", "was saved by".
    r"\bevery\b|\b(?:save|saving|writing|storing) (?:all )?checkpoints\b(?! for \d|\s?\.{2,3}$)"
    r"|\bwas saved (?:by|with|from)\b|\b(?:are|is) kept\b|\b(?:activation|gradient)[ _]checkpoint"
    r"|\d saved checkpoints|\bcheckpoint saved from\b|\bsaved as a part\b|\bgets? saved\b",
)
_SAVED_PATH = re.compile(
    r"\b(?:sav(?:ing|ed)|wrote|writing)\b[^/]{0,60}?/[^\s]{0,400}?"
    r"(?:checkpoint[-_]|ckpt[-_]|global_step_?|step[-_=]|iter_|epoch[-_=])\d",
)
_SAVED_FILE = re.compile(  # weights by the name of their file
    r"(?:\b(?:sav(?:ed?|ing)|wrote|writing|stor(?:ed|ing)) (?:[\w-]+ ){0,3}?(?:model|snapshot|ckpt|weights"
    r"|adapter|network|policy|agent):? (?:to:? |in |at |as )?|\b(?:model|snapshot|ckpt|network|policy|agent)"
    r" saved(?: (?:to|in|at|as)|:) )\S{1,400}\.(?:pth?|ckpt|safetensors)\b",
)
_NOT_SAVING = re.compile(
    r"\b(?:load|resum|restor|delet|remov|not sav|will be sav|would|skip|fail|error|unable|could ?n.t"
    r"|sav(?:ing|ed) (?:the )?(?:\w+ )?(?:result|sample|prediction|image|figure|plot|video|metric|log)s?\b"
    r"|\.(?:png|jpe?g|gif|mp4|wav|csv|log)\b|(?:using|evaluating) (?:the )?checkpoint|interval|def "
    r"|about to be|saving dict\b|ensure|should|(?:when|before) saving|convert|written \d)",
)
_CODE = re.compile(r"^\s*(?:#|//|[\"']{3}|assert )|\w\(f?[\"']|, f[\"']")  # comments, calls with a text
_PATH = re.compile(r"(?<![\w.@=+/-])(?:[A-Za-z0-9]{1,12}://|/)?[\w.@=+-]++(?:/[\w.@=+-]++)++/?")
_ABSOLUTE = re.compile(r"(?<![\w./])/[\w.@=+-]++/?(?=\s|$|[,;:'\")])")
_NAMED = re.compile(
    r"\b((?:checkpoint|ckpt)[-_]\d+|global_step_?\d+|iter_\d+|step[-_=]\d+|epoch[-_=]\d+[\w.=-]*)"
)
_EXTENSION = re.compile(r"\.\w{1,12}")
_ITERATION = re.compile(r"\b(iteration|step)[ =:]{1,8}(\d{1,12})\b", re.IGNORECASE)
_VERL_FOLDER = "local_global_step_folder:"
_MAX_NAME = 120
_WORDS = (
    "sav",
    "finalized",
    "snapshotting",
    "writ",
    "wrote",
    "stor",
    "is ready now",
    "created at",
    "after step",
    _VERL_FOLDER,
)  # Every such line contains one of these.


def read(text: str) -> ParsedMetrics | None:
    """Parse a line about saving a checkpoint; the name is empty if the line has none."""
    lowered = text.lower()
    for word in _WORDS:
        if word in lowered:
            break
    else:
        return None
    about_saving = (
        _SAVING.search(lowered)
        or _SAVING_MODEL.search(lowered)
        or _SAVED_AFTER.search(lowered)
        or _SAVED_PATH.search(lowered)
        or _SAVED_FILE.search(lowered)
        or _VERL_FOLDER in text
    )
    if not about_saving or _NOT_SAVING.search(lowered) or _CODE.search(text) or is_spoken(lowered):
        return None
    if _ANNOUNCED.search(lowered) and not _NAMED.search(text):
        return None
    return ParsedMetrics(checkpoint=_name(text)[:_MAX_NAME])


def _name(text: str) -> str:
    named = [str(name).rstrip(".") for name in _NAMED.findall(text)]
    if named:
        # The whole name of such a directory or file: model--loss=1.20-epoch=0.ckpt, step500-unsharded.
        parts = (part for path in _PATH.findall(text) for part in path.split("/") if named[-1] in part)
        whole = max(parts, key=len, default=named[-1])
        return named[-1] if _EXTENSION.fullmatch(whole.removeprefix(named[-1])) else whole
    counted = _ITERATION.search(text)
    if counted is not None:
        # Megatron-LM names the directory of iteration 4000 iter_0004000.
        iteration = counted[1].lower() == "iteration"
        return f"iter_{int(counted[2]):07d}" if iteration else f"step-{int(counted[2])}"
    paths = _PATH.findall(text) or _ABSOLUTE.findall(text)
    if not paths:
        return ""
    return str(max(paths, key=len)).rstrip("/.").rpartition("/")[2]
