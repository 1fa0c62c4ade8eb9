"""The meaning of the names that trainers print for their values.

A name is split into words, and the words decide: ``train/loss``, ``reduced_train_loss`` and ``Loss/total``
are the training loss, ``eval_math_loss`` is an evaluation's, and ``kl_loss`` or ``loss_scale`` is neither. A
name with a word that is not listed here means nothing: a wrong value is worse than none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Meaning(NamedTuple):
    """A field of ``ParsedMetrics``, the name's rank among the names of that field, and a factor to its unit.

    If a line has several names for one field, the lowest rank wins.
    """

    field: str
    rank: int = 0
    scale: float = 1.0


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text, for lists that read better as one."""
    return frozenset(words.split())


EVALUATION = word_set(
    "eval evaluation evaluating val vali valid validation validate validating test dev holdout"
    " heldout cv crossval va vl vld te tst"
)
SECTION = r"(?:valid(?:ation)?|val|eval(?:uation)?|test|dev|cv|h[eo]ld-?out)"
"""An evaluation's word before the values of a part of a line, lowercase: ``train: … | val: …``."""

_TRAIN = word_set("train training trainer trn tr")
_SCOPES = word_set(
    "metrics metric perf performance ppo optim optimizer opt throughput device stats losses loss timing"
)
_STATISTICS = word_set(
    "mean avg average avr running batch minibatch epoch curr current cur iter smoothed smooth ema reduced"
    " last all main sample rank node worker slice local mini"
)
_TRAINING_LOSSES = word_set(
    "total tot global lm ce nll xent cross entropy gpt sft pg policy actor distill main per token of causal"
    " grpo word language modeling model dpo orpo kto simpo rnnt diffusion denoising mse student gen"
    " generator reward step final"
)
_ONLY_LOSSES = word_set(
    "softmax sparse categorical binary bce focal contrastive huber nce infonce clip dice l1 l2 smooth"
    " supervised ctc mlm"
)
_PARTS = word_set(
    "bb box bbox boxes cls clf classifier class classification reg regression recon reconstruction rec obj"
    " objectness dfl giou ciou iou conf mask rpn rcnn kpt keypoint seg kl kld vq commit commitment codebook"
    " adv disc perceptual lpips ssim fm mel dur duration pitch energy aux router balance z mtp value vf"
    " att attention init"
)
"""What a loss is a part of, if a name has one of these words and not the total's."""

ALONE = 20
"""The rank of a loss that is a part of one wherever another loss stands beside it."""

_NOT_AN_EVALUATION = word_set(
    "best min max lowest initial target previous reference scale kl aux scaled weight steps"
    " improved decreased increased from to did not was is reached no at after"
)
_RATE_SCOPES = (
    _TRAIN
    | _SCOPES
    | word_set(
        "avg average mean curr current cur interval global e2e per gpu step device running target tgt source"
    )
)

_EXACT = {
    "lm loss value": Meaning("eval_loss"),  # Megatron-LM's validation
    "lm_loss value": Meaning("eval_loss"),  # GPT-NeoX's
    "closs": Meaning("loss", 2),  # LLaMA2-Accessory
}

_GLUED = re.compile(r"(train|val|valid|test|total|avg|mean|lm|mlm)loss")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPLIT = re.compile(r"[^a-z0-9]+")
_PARENTHESES = re.compile(r"\s?\(([^()]{0,24})\)")
_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "in s": 1.0, "1e-3": 1e-3}

_STEPS = {
    name: rank
    for rank, names in enumerate(
        (
            ("step", "current steps", "current step"),
            ("global step", "global steps"),
            (
                "num updates",
                "nupdates",
                "update step",
                "training step",
                "train step",
                "optimizer step",
                "opt step",
            ),
            ("steps", "update", "updates"),
            ("iteration", "iter", "iters", "it", "itr", "iterations", "step num"),
            ("batch", "batch idx", "minibatch"),
        )
    )
    for name in names
}
_TOTAL_STEPS = word_set(
    "total_steps max_steps num_steps total_step total_iterations train_iters max_iters num_training_steps"
)
_TOKEN_RATE = re.compile(
    r"(?:tok|toks|token|tokens|words)(?: train)?(?: ?per ?| )(?:s|sec|second)(?: per)?"
    r"(?: (?:per )?(?:gpu|device|chip|rank|thread))?"
    r"|(?:tok|token|tokens) per (?:gpu|device) per (?:s|sec|second)|tps|wps|tgs|tok sec gpu"
)
_SAMPLE_RATE = re.compile(
    r"(?:samples?|ex|examples?|seqs?|sequences?|images?|imgs?|imps|sents?|sentences?|frames?|clips?|pairs|prompts"
    r"|records|utts|utterances|graphs)(?: ?per ?| )(?:s|sec|second)"
    r"(?: (?:per )?(?:gpu|device|chip|core|rank))?|imps"
)
_STEP_TIME = re.compile(
    r"(?:(?:train|elapsed|wall|end to end|total|per) )?(?:step|iter|iteration|batch|it) "
    r"(?:time|timing|avg|duration|runtime)"
    r"|(?:elapsed |run)?time(?: per|) (?:step|iteration|iter|it|batch)"
    r"|(?:sec|s|second|seconds|ms)(?: per|) (?:step|it|iter|iteration)"
    r"|(?:fwd|forward) (?:and )?(?:bwd|backward) time"
    r"|interval runtime per step|dt|end to end|step"
)


@lru_cache(maxsize=8192)
def meaning(name: str) -> Meaning | None:
    """Return the meaning of a name as printed; None for a name without one."""
    units = [unit.strip() for unit in _PARENTHESES.findall(name)]
    bare = _PARENTHESES.sub(" ", name)
    words = [word for word in _SPLIT.split(_CAMEL.sub(" ", bare).lower()) if word]
    if not words or len(words) > 10:
        return None
    glued = _GLUED.fullmatch(words[0])
    if glued is not None:
        words[:1] = [glued[1], "loss"]
    if bare.strip().lower() in _EXACT:
        return _EXACT[bare.strip().lower()]
    known = _loss(words) or _learning_rate(words) or _grad_norm(words)
    if known is None:
        known = _count(words) or _rate(words, units) or _step_time(words, units)
    if known is not None and name[0] == "_":
        return known._replace(rank=known.rank + 3)  # Weights & Biases' own count of what it was sent
    if known is None:
        return None
    for unit in units:
        scale = _UNITS.get(unit.lower())
        if scale is not None and known.field in ("learning_rate", "step_time_s"):
            return Meaning(known.field, known.rank, scale)
    return known


def _loss(words: list[str]) -> Meaning | None:
    rest = list(words)
    if words[-1] == "objf":  # k2 and Kaldi
        rest[-1:] = []
    elif "loss" in words:
        rest.remove("loss")
        if "entropy" in rest and "cross" not in rest:
            return None
    elif words[-2:] != ["cross", "entropy"] and words not in (["xent"], ["ce"]):
        return None
    evaluates = not EVALUATION.isdisjoint(words)
    rest = [word for word in rest if word not in EVALUATION | _TRAIN]
    if evaluates:
        if not (_NOT_AN_EVALUATION | _PARTS).isdisjoint(rest):
            return None
        if words[-1] not in EVALUATION | {"loss"} and set(rest) - _STATISTICS - _TRAINING_LOSSES - _SCOPES:
            return None  # Loss/test_head: a part by its name
        return Meaning("eval_loss", 0 if not rest else 8 if "nll" in rest else 4)
    if rest and rest[-1] == "0":
        rest.pop()
    other = set(rest) - _STATISTICS - _TRAINING_LOSSES - _SCOPES
    if other:
        return Meaning("loss", ALONE) if other <= _ONLY_LOSSES else None
    rank = 0 if not rest else 1 + len(rest)
    if "step" in rest:
        rank = 1  # Lightning prints the mean over the epoch beside it
    elif not word_set("total tot final").isdisjoint(rest):
        rank = 1
    elif not word_set("nll ce cross entropy reward epoch mean").isdisjoint(rest):
        rank += 4
    return Meaning("loss", rank)


_LR_WORDS = (
    _TRAIN
    | _SCOPES
    | word_set(
        "actor policy group pg cur current curr last step main model param params average avg rl base info"
        " updating setting set reducing new"
    )
)
_LR_NAME = re.compile(r"\b(?:learn(?:ing)? ?rate|lrate)\b")
_NOT_LR = re.compile(
    r"^(?:\d+|pg\d*|group\d*|w|[a-z]*(?:adam|sgd|lion|muon|adafactor|lamb|decoupled)[a-z0-9]*)$"
)


def _learning_rate(words: list[str]) -> Meaning | None:
    if words == ["optim0", "lr0"]:  # ESPnet
        return Meaning("learning_rate")
    words = _LR_NAME.sub("lr", " ".join(words)).split()
    rest = [word for word in words if word != "lr"]
    if "lr" not in words:
        return None
    if any(word not in _LR_WORDS and not _NOT_LR.match(word) for word in rest):
        return None
    return Meaning("learning_rate", len(rest))


_NORM_WORDS = (
    _TRAIN
    | _SCOPES
    | word_set("grad gradient gradients total global actor policy avg average mean l2 generator model raw")
)


def _grad_norm(words: list[str]) -> Meaning | None:
    if words[-4:] == ["l2", "norm", "grad", "global"]:  # MosaicML Composer
        return Meaning("grad_norm")
    if words in (["norm"], ["gnorm"], ["gradnorm"], ["grdn"], ["grad"], ["g", "norm"], ["g", "n"]):
        return Meaning("grad_norm")
    if words[-1] not in ("norm", "gnorm", "gradnorm"):
        return None
    rest = words[:-1]
    if words[-1] == "norm" and rest[-1:] not in (["grad"], ["gradient"], ["gradients"]):
        return None
    return Meaning("grad_norm", len(rest)) if all(word in _NORM_WORDS for word in rest) else None


def _count(words: list[str]) -> Meaning | None:
    name = " ".join(words)
    if name in _STEPS:
        return Meaning("step", _STEPS[name])
    if "_".join(words) in _TOTAL_STEPS:
        return Meaning("total_steps")
    if name in ("epoch", "epochs", "ep", "epch", "epoch num"):
        return Meaning("epoch", int(name == "ep"))  # beside "epch" it is LeRobot's episode
    if words[1:] == ["num", "updates"] and words[0] in EVALUATION:  # fairseq: the run's updates so far
        return Meaning("step", _STEPS["num updates"])
    if len(words) > 1 and words[0] in _TRAIN:
        inner = _count(words[1:])
        # train_steps is a setting; train/step is a count.
        return (
            inner if (inner is not None and not words[-1].endswith("s")) or words[-1] == "updates" else None
        )
    return None


def _rate(words: list[str], units: list[str]) -> Meaning | None:
    if not EVALUATION.isdisjoint(words):
        return None
    name = " ".join(words)
    if name in ("e2e", "throughput", "speed", "performance"):
        for told in filter(None, map(meaning, units)):
            if told.field in ("tokens_per_s", "samples_per_s"):
                return Meaning(told.field, 3)
    while True:
        if _TOKEN_RATE.fullmatch(name):
            return Meaning("tokens_per_s", len(words) + 5 * ("source" in words))
        if _SAMPLE_RATE.fullmatch(name):
            return Meaning("samples_per_s", len(words))
        first, _, rest = name.partition(" ")
        if not rest or first not in _RATE_SCOPES:
            break
        name = rest
    if words[-1] == "throughput" and all(word in _RATE_SCOPES for word in words):
        unit = " ".join(units).lower()
        return None if "flop" in unit or "sample" in unit else Meaning("tokens_per_s", 9)
    return None


def _step_time(words: list[str], units: list[str]) -> Meaning | None:
    scale = 1.0
    if words[-1] in ("ms", "s") and len(words) > 1:
        scale = _UNITS[words[-1]]
        words = words[:-1]
    name = " ".join(word for word in words if word != "in")
    if name.startswith("ms "):
        scale = 1e-3
    for scope in ("perf ", "timing ", "time metrics ", "train "):
        name = name.removeprefix(scope)
    if name == "dt":
        return Meaning("step_time_s", 1, 1e-3)
    if name == "time":
        return Meaning("step_time_s", 5, scale)
    if name == "step" and words[0] != "timing":
        return None
    return Meaning("step_time_s", 0, scale) if _STEP_TIME.fullmatch(name) else None
