"""Messages of most trainers that a checkpoint was or is being saved."""

from __future__ import annotations

import re

from tui.analysis.progress.lines.reading import ParsedMetrics, to_step

# These match lowercase text, which is several times faster than ignoring case.
_VERB = r"(?:sav(?:ing|ed)|wrote|writing|stor(?:ing|ed)|dump(?:ing|ed)|snapshott(?:ing|ed))"
_MODEL = (
    r"(?:models?|weights|param(?:eter)?s|adapters?|network|net|policy|agent|actor|learner|lora|snapshot|ckpt"
    r"|ema|generator|pipeline|(?<!current )(?<!random )states?(?:[ _]dict)?|state_dict)\b"
)
_FILE = r"\.(?:pth?|ckpt|safetensors|caffemodel|pdparams|gguf|keras|hdf5|h5|t7|msgpack)\b"
_PLACE = r"(?: ?\(| ?: ?[^\s]{0,400}[/.]\w|(?: [\w()=-]{1,24}){0,9}? (?:to|in|into|at|as|under)\b:?) ?[^\s]"
_SAVING = re.compile(
    rf"\b{_VERB}\b[^/{{]{{0,60}}?\b(?:checkpoint|ckpt|global_step)"
    # a model or its weights, to a place or with nothing more said
    rf"|\b{_VERB} (?:[\w'.+-]{{1,24}} ){{0,5}}?{_MODEL}(?: file)?(?:{_PLACE}|\W{{0,4}}$| ?\.{{2,3}})"
    # "Saving state, iter: 5000", "Saving to: run/checkpoints/0000001000"
    rf"|\b{_VERB} (?:[\w'+-]{{1,24}} ){{0,3}}?{_MODEL}, ?(?:at )?(?:step|iter|epoch)\w{{0,6}}[ :=]{{1,3}}\d"
    rf"|\b{_VERB}(?: to)?:? [^\s]{{0,400}}\b(?:checkpoints?|ckpts?)/[\w=.-]{{0,40}}\d/?\W{{0,3}}$"
    rf"|\bsave (?:[\w'+-]{{1,24}} ){{0,3}}?(?:checkpoint|{_MODEL})(?: (?:to|in|at|as|checkpoint to))?"
    r"(?:: (?:step|iter\w*) |:? ?)[^\s]{0,400}(?:[/.]\w|\d\b)"
    r"|\bsav(?:ing|ed) (?:the )?(?:new |current )?(?:best|latest)(?: [\w.-]+)? ?(?:model|$|:)"
    r"|\bsav(?:ing|ed) model (?:\(|\d)|\bsnapshotting to \S|\bsaving gaussians\b"
    r"|\bsaving models and training states\b|\bsav(?:ing|ed) (?:at|for) (?:step|epoch|iteration) \d"
    r"|\bcheckpoint(?:ed|ing)? (?:the )?(?:policy|model|state) (?:after|at) (?:step|iteration|epoch) \d"
)
_SAVED_AFTER = re.compile(
    r"\bcheckpoint save : .{0,40}?\biteration: \d"  # NeMo
    r"|\bcheckpoint\b.{0,160}?\b(?:saved|is ready now|written|finalized successfully)\b"
    r"|\bmodel\b.{0,80}? was saved at (?:iter\w*|step|epoch) \d"
    r"|\bcheckpoint (?:successfully )?created at\b"
    r"|\bcheckpoint file has been (?:updated|saved)\b|\bcheckpoint[_.]saved\b"
    rf"|\b{_MODEL}[^.;:?]{{0,40}}? (?:saved|written|stored)"
    r"(?::| (?:to|in|at|as|under)\b(?: file)?:?| ?(?:→|->|=>))? ?"
    r"['\"`]?[^\s]{0,400}[/.]\S"
    r"|\b(?:models?|weights|snapshot|ckpt|adapters?|network|(?:model|epoch|ckpt)(?: at \w+)? \d+)"
    r" (?:was |is |has been |successfully )?saved(?: with [\w .:=]{1,40}| at \w{4,9} \d{1,12})?\W*$"
)
_ANNOUNCED = re.compile(
    # Future or past saves: "every 500 steps", "saving checkpoints to …", "was saved by".
    r"\bevery\b|\b(?:save|saving|writing|storing) (?:all )?checkpoints\b"
    r"(?! for \d| at \d{1,9} epochs?\W{0,2}$|\s?\.{2,3}$)"
    r"|\bwas saved (?:by|with|from)\b|\b(?:are|is) kept\b|\b(?:activation|gradient)[ _]checkpoint"
    r"|\d saved checkpoints|\bcheckpoint saved from\b|\bsaved as a part\b|\bgets? saved\b",
)
_SAVED_PATH = re.compile(
    r"\b(?:sav(?:ing|ed)|wrote|writing)\b[^/]{0,60}?/[^\s]{0,400}?"
    r"(?:checkpoint[-_]|ckpt[-_]|global_step_?|step[-_=]|iter_|epoch[-_=])\d",
)
_SAVED_FILE = re.compile(  # weights by the name of their file
    rf"(?:\b{_VERB}|\bsave)(?::| [\w'.:+-]{{1,24}}){{0,6}} \S{{0,400}}?{_FILE}"
    rf"|{_FILE}['\"]? ?(?:is |was )?(?:sav(?:ed|ing)|written)\b"
)
_ALONE = re.compile(r"^\W{0,8}checkpoint (?:at|for) (?:global )?(?:step|iteration) \d[\d,]{0,14}\W{0,4}$")
_NOT_SAVING = re.compile(
    r"\b(?:load|resum|restor|delet|remov|not sav|will be sav|would|skip|fail|error|unable|could ?n.t"
    r"|sav(?:ing|ed) (?:the )?(?:\w+ )?(?:result|sample|prediction|image|figure|plot|video|metric|log)s?\b"
    r"|\.(?:png|jpe?g|gif|mp4|wav|csv|log|onnx)\b|(?:using|evaluating) (?:the )?checkpoint|interval|def "
    r"|about to be|saving dict\b|ensure|should|(?:when|before) saving|convert|written \d)",
)
_NOT_WEIGHTS = re.compile(
    r"(?<![/\w.-])(?:data(?:set)?|features?|embeddings?|tokenizer|settings|config\w*|summary|inputs?|outputs?"
    r"|database|for later)(?![/\w.-])|\.(?:json|ya?ml|conf|txt)\b"
)
_CODE = re.compile(r"^\s*(?:#|//|[\"']{3}|assert )|\w\(f?[\"']|, f[\"']")  # comments, calls with a text
_PATH = re.compile(r"(?<![\w.@=+/-])(?:[A-Za-z0-9]{1,12}://|/)?[\w.@=+-]++(?:/[\w.@=+-]++)++/?")
_ABSOLUTE = re.compile(r"(?<![\w./])/[\w.@=+-]++/?(?=\s|$|[,;:'\")])")
_NAMED = re.compile(
    r"\b((?:checkpoint|ckpt)[-_]\d+|global_step_?\d+|iter_\d+|step[-_=]\d+|epoch[-_=]\d+[\w.=-]*)"
)
_EXTENSION = re.compile(r"\.\w{1,12}")
_ITERATION = re.compile(r"\b(iteration|step)[ =:]{1,8}(\d{1,12})\b", re.IGNORECASE)
_STEP = re.compile(
    # in words, not in a path, and not an earlier one: "best so far at step 400"
    r"(?<!best )(?<!best at )(?<!last )(?<!next )(?<!since )(?<![\w./=-])"
    r"(?:(?:global|train(?:ing)?|optimizer)[ _])?(?:step|iter(?:ation)?|update|total_iters)s?(?: number)?"
    r"[ :=#]{1,8}(?P<step>\d[\d,]{0,14})(?: ?/ ?\d[\d,]{0,14})?(?![\w/-]|\.\w)"
    r"|(?:\bafter|@) (?P<after>\d[\d,]{0,14}) (?:global |training )?(?:step|iteration|update)s\b"
    r"|\bsaving checkpoints for (?P<of>\d{1,12}) into\b"  # TensorFlow's estimators
)
_BEST_SO_FAR = "so far"
_VERL_FOLDER = "local_global_step_folder:"
_MAX_NAME = 120
_WORDS = (
    "sav",
    "finalized",
    "snapshotting",
    "writ",
    "wrote",
    "stor",
    "dump",
    "is ready now",
    "created at",
    "after step",
    "checkpoint at ",
    "checkpoint for ",
    "checkpoint file has",
    _VERL_FOLDER,
)  # Every such line contains one of these.


def mentions_save(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _WORDS)


def read(text: str) -> ParsedMetrics | None:
    """Parse a line about saving a checkpoint, and the step that it names; the name may be empty."""
    lowered = text.lower()
    about_saving = (
        _SAVING.search(lowered)
        or _SAVED_AFTER.search(lowered)
        or _SAVED_PATH.search(lowered)
        or _SAVED_FILE.search(lowered)
        or _VERL_FOLDER in text
        or _ALONE.match(lowered)
    )
    if not about_saving or _NOT_SAVING.search(lowered) or _CODE.search(text):
        return None
    if _NOT_WEIGHTS.search(lowered) and "checkpoint" not in lowered:
        return None
    if _ANNOUNCED.search(lowered) and not _NAMED.search(text):
        return None
    named = _STEP.search(lowered) if _BEST_SO_FAR not in lowered else None
    step = None if named is None else to_step(named[named.lastgroup or 0].rstrip(","))
    return ParsedMetrics(checkpoint=_name(text)[:_MAX_NAME], step=step)


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
