"""The meanings of the names that trainers give their numbers.

A name is split into words. A quantity is one of few words (loss, step, epoch, lr, norm, per second); every
other word must be one that says whose or which: ``train/loss``, ``reduced_train_loss`` and ``Loss/total`` are
the loss, while ``kl_loss`` and ``loss_scale`` are something else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Meaning(NamedTuple):
    """A field of a reading, the name's rank among those of that field, and the factor to the field's unit.

    If a line has several names for one field, the lowest rank wins. A negative ``scale``: the inverse.
    """

    field: str
    rank: int = 0
    scale: float = 1.0


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


EVALUATION = _words(
    "eval evaluation evaluate evaluating val vali valid validation validate validating test testing dev"
    " holdout heldout va cv"
)
TRAINING = _words("train training trainer trained trn learn")
LEADS = _words(
    "at @ on of in for after to from by completed complete begin beginning start starting finished end done"
    " step epoch iteration batch saving saved checkpoint loss evaluated learning summary result results"
    " metrics"
)
LEADS |= TRAINING | EVALUATION
"""Words before the name of a count that leave its meaning: ``completed step``, ``step of epoch``."""

_WHICH = TRAINING | _words(
    "metrics metric perf ppo optim throughput device stats losses mean avg average avr update batch"
    " minibatch epoch curr current iter iteration reduced last rank global total per gpu actor policy"
    " group param pg interval system final raw tot all 0 running"
)
"""Words that say whose a value is, or how it was averaged."""

_LOSSES = _WHICH | _words("lm ce cross entropy gpt pg s step c language log")
"""Words that say which loss is the training's whole one."""

_STEPS = {
    name: rank
    for rank, names in enumerate(
        (
            "global step|global steps|num updates|update step|training step|train step|optimizer step",
            "step|steps|current steps|current step|update|updates",
            "iteration|iter|iters|it|itr|iterations|step num",
            "batch|batch idx|minibatch",
        )
    )
    for name in names.split("|")
}
_TOTALS = _words("max_steps num_steps total_step train_iters max_iters num_training_steps")
_EPOCHS = {"epoch": 0, "epochs": 1, "epch": 0, "ep": 2}
_PER_SECOND = re.compile(r"(?:per|/)?\s?(?:s|sec|second|secs)(?: (?:per )?(?:gpu|device|chip|rank|core))*")
_TOKENS = _words("tok toks token tokens words tps wps tgs")
_SAMPLES = _words(
    "sample samples ex example examples seq seqs sequence sequences image images img imgs imps sents"
    " sentences frames clips"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPLIT = re.compile(r"[^a-z0-9]+")
_SCALES = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "1e-3": 1e-3}


def words_of(name: str) -> list[str]:
    name = _CAMEL.sub(" ", name).lower().replace("held-out", "heldout").replace("held_out", "heldout")
    return [word for word in _SPLIT.split(name) if word]


def names_evaluation(name: str) -> bool:
    """Return True if a name says that its value is an evaluation's."""
    return not EVALUATION.isdisjoint(words_of(name))


def names_loss(name: str) -> bool:
    """Return True for any loss, such as one of several that make up the training's."""
    return words_of(name)[-1:] == ["loss"]


@lru_cache(maxsize=4096)
def meaning(name: str, unit: str = "") -> Meaning | None:
    """Return the meaning of a name as printed, with its unit if one is printed; None for one without."""
    path, _, rest = name.partition("/")
    return _meaning(words_of(name), unit) or (
        _meaning(words_of(rest), unit) if not TRAINING.isdisjoint(words_of(path)) else None
    )


def _meaning(words: list[str], unit: str) -> Meaning | None:
    if words and words[-1] in ("is", "was"):
        words.pop()
    if not words and unit == "/s":
        return Meaning("samples_per_s", 9)
    if not 0 < len(words) <= 8:
        return None
    if (ending := words[-1].removesuffix("loss")) in ("log", "ce", "nll", "bce", "c") and words[-1] != ending:
        words[-1:] = [ending, "loss"]
    return (
        _loss(words)
        or _rate(words, unit)
        or _learning_rate(words, unit)
        or _norm(words)
        or _step_time(words, unit)
        or _count(words)
    )


def _loss(words: list[str]) -> Meaning | None:
    is_entropy = words[-2:] == ["cross", "entropy"] or words in (["xent"], ["ce"])
    if "loss" not in words and not is_entropy:
        return None
    rest = [word for word in words if word != "loss" and word not in EVALUATION]
    if "entropy" in rest and "cross" not in rest:
        return None
    evaluates = not EVALUATION.isdisjoint(words)
    if rest == ["lm", "value"]:  # Megatron-LM's validation
        return Meaning("eval_loss", 1)
    if not set(rest) <= _LOSSES:
        return None
    return Meaning("eval_loss" if evaluates else "loss", len(rest))


def _learning_rate(words: list[str], unit: str) -> Meaning | None:
    name = " ".join(words).replace("learning rate", "lr").replace("l r", "lr")
    rest = [word.rstrip("0123456789") for word in name.split()]  # of each group: optim0_lr0
    if "lr" not in rest:
        return None
    rest.remove("lr")
    return (
        Meaning("learning_rate", len(rest), _SCALES.get(unit, 1.0))
        if set(rest) <= _WHICH | {"decoupled", "adam", "w", ""}
        else None
    )


def _norm(words: list[str]) -> Meaning | None:
    if (words[-1] in ("gnorm", "gradnorm", "grdn") and set(words[:-1]) <= _WHICH) or words == ["norm"]:
        return Meaning("grad_norm")
    rest = [word for word in words if word not in ("g", "grad", "gradient", "norm", "l2")]
    return (
        Meaning("grad_norm", len(rest))
        if "norm" in words and len(words) - len(rest) >= 2 and set(rest) <= _WHICH
        else None
    )


def _rate(words: list[str], unit: str) -> Meaning | None:
    for field, things in (("tokens_per_s", _TOKENS), ("samples_per_s", _SAMPLES)):
        for position, word in enumerate(words):
            if word in things:
                after = " ".join(word for word in words[position + 1 :] if word not in TRAINING)
                rest = set(words[:position])
                if rest <= _WHICH and (
                    _PER_SECOND.fullmatch(after) or (not after and word in ("tps", "wps", "tgs", "imps"))
                ):
                    return Meaning(field, len(words))
    if words[-1] in ("throughput", "speed", "rate", "ips") and set(words[:-1]) <= _WHICH:
        told = meaning(unit) if unit else None
        if told is not None or (not unit and words[-1] == "throughput"):
            return Meaning(told.field if told else "tokens_per_s", 9)
    return None


_STEP = _words("step iter iteration batch it")
_TIME = _words("time timing duration")
_PASSES = _words("fwd forward bwd backward and")


def _step_time(words: list[str], unit: str) -> Meaning | None:
    known = set(words)
    # Both passes make a step; a time of one of them does not.
    is_both = known & {"fwd", "forward"} and known & {"bwd", "backward"} and known <= _PASSES | _TIME
    if (words in (["time"], ["step"]) or (is_both and known & _TIME)) and unit in ("ms", "s"):
        return Meaning("step_time_s", 5, _SCALES[unit])
    is_time = (
        known & _STEP and known & _TIME and known <= _STEP | _TIME | _words("in s train per avg elapsed")
    )
    if words != ["dt"] and not is_time:
        return None
    return Meaning("step_time_s", 0, 1e-3 if unit == "ms" else 1.0)


def _count(words: list[str]) -> Meaning | None:
    if "in" in words[1:]:
        words = words[: words.index("in", 1)]  # step_in_epoch
    name = " ".join(words)
    is_all = words[0] == "total" and words[-1] in ("steps", "iterations", "updates")
    if "_".join(words) in _TOTALS or (is_all and EVALUATION.isdisjoint(words)):
        return Meaning("total_steps")
    while words and words[0] in TRAINING | {"training", "system"} and len(words) > 1 and name not in _STEPS:
        words = words[1:]
        name = " ".join(words)
    if name in _STEPS:
        return Meaning("step", _STEPS[name])
    if len(words) == 1 and words[0] in _EPOCHS:
        return Meaning("epoch", _EPOCHS[words[0]])
    if name == "rank":
        return Meaning("rank")
    return None
