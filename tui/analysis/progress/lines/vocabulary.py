"""The meanings of the names that trainers give their numbers.

A name is split into words. Without qualifiers (whose value, how averaged), a quantity has one of few names:
``train/loss``, ``reduced_train_loss`` and ``Loss/total`` are the loss, while ``kl_loss`` and ``loss_scale``
are something else.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Meaning(NamedTuple):
    """A field of a reading, the name's rank among those of that field, and the factor to the field's unit.

    If a line has several names for one field, the lowest rank wins. A negative ``scale`` inverts
    the number.
    """

    field: str
    rank: int = 0
    scale: float = 1.0


ENVIRONMENT_STEPS = Meaning("step", 4)
"""Environment steps, which reinforcement learning trainers count instead of or besides iterations."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


EVALUATION = _words(
    "eval evaluation evaluate evaluating val vali valid validation validate validating test testing dev"
    " holdout heldout va cv"
)
TRAINING = _words("train training trainer trained trn tr learn")
COUNT_PREFIXES = _words(
    "at @ on of in for after to from by completed complete begin beginning start started starting finished"
    " end done new step epoch iteration batch saving saved checkpoint loss evaluated learning summary result"
    " results metrics"
)
COUNT_PREFIXES |= TRAINING | EVALUATION
"""Words that may precede the name of a count without changing it: ``completed step``, ``step of epoch``."""

_QUALIFIERS = TRAINING | _words(
    "metrics metric perf ppo optim throughput device stats losses mean avg average averaged avr update batch"
    " minibatch epoch curr current iter iteration reduced last rank global total per gpu actor policy"
    " group param pg interval system final raw tot all running adam w decoupled chip core step softmax"
)
"""Qualifiers, which do not change the quantity: whose value it is, or how it was averaged."""

_AUXILIARY = _words("aux auxiliary balance balancing router z")
"""Words of load-balancing losses of a mixture of experts, which do not measure what the model learns."""

_NAMES = re.compile(
    r"(?P<eval_loss>lm loss value)"  # Megatron-LM's evaluation loss
    r"|(?P<loss>(?:(?:lm|ce|cross entropy|gpt|language|s|c|log) )*(?:loss|cross entropy|xent|ce)"
    r"(?: (?:lm|ce|cross entropy))*)"
    r"|(?P<learning_rate>lr\d*|learning rate|l r)"
    r"|(?P<grad_norm>(?:g|grad|gradient)(?: l2)? norm|(?:l2 )?norm grad(?:ient)?|gnorm|gn|gradnorm|grdn)"
    r"|(?P<tokens_per_s>(?:toks?|tokens?|words) (?:s|secs?|seconds?)|tps|wps|tgs)"
    r"|(?P<samples_per_s>(?:samples?|ex|examples?|seqs?|sequences?|images?|imgs?|sents|sentences|frames|clips)"
    r" (?:s|secs?|seconds?)|imps)"
)
"""The names of each field, without qualifiers."""

_STEP_TIME = re.compile(
    r"dt|(?:(?:train|avg|elapsed|per) )*(?:(?:step|iter|iteration|batch|it) (?:time|timing|duration)"
    r"|(?:time|timing|duration)(?: s)? (?:per )?(?:step|iter|iteration|batch|it))(?: (?:in )?s| train)?"
    r"|(?:fwd|forward) (?:and )?(?:bwd|backward) (?:time|timing)"
)

_COUNTS = {
    name: meaning
    for meaning, names in (
        (Meaning("step", 0), "global step|global steps|num updates|update step|training step|train step"),
        (Meaning("step", 0), "optimizer step"),
        (Meaning("step", 1), "step|steps|current steps|current step|update|updates"),
        (Meaning("step", 2), "iteration|iter|iters|it|itr|iterations|step num"),
        (Meaning("step", 3), "batch|batch idx|minibatch"),
        (ENVIRONMENT_STEPS, "total timesteps|timesteps"),
        (Meaning("epoch", 0), "epoch|epch"),
        (Meaning("epoch", 1), "epochs"),
        (Meaning("epoch", 2), "ep"),
        (Meaning("total_steps"), "max steps|num steps|total step|train iters|max iters|num training steps"),
        (Meaning("rank"), "rank"),
        (Meaning("grad_norm"), "norm"),
    )
    for name in names.split("|")
}
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOINED = re.compile(r"(?<=[a-z])loss\b")
_SPLIT = re.compile(r"[\W_]+")
_SCALES = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "1e-3": 1e-3}


def words_of(name: str) -> list[str]:
    name = _JOINED.sub(" loss", _CAMEL.sub(" ", name).lower())
    name = name.replace("held-out", "heldout").replace("held_out", "heldout")
    return [word for word in _SPLIT.split(name) if word and word[0].isascii()]


def names_evaluation(name: str) -> bool:
    """Return True if a name says that its value is an evaluation's."""
    return not EVALUATION.isdisjoint(words_of(name))


def names_loss(name: str) -> bool:
    """Return True for any loss, such as one term of the training's; not for a load-balancing loss."""
    words = words_of(name)
    return [word for word in words if word not in _QUALIFIERS][-1:] == ["loss"] and _AUXILIARY.isdisjoint(
        words
    )


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
    name = " ".join(words)
    scale = _SCALES.get(unit, 1.0)
    if _STEP_TIME.fullmatch(name):
        return Meaning("step_time_s", 0, scale)
    if (name, unit) in (("time", "ms"), ("step", "ms"), ("step", "s")):
        return Meaning("step_time_s", 5, scale)
    core = [word for word in words if word.rstrip("0123456789") not in _QUALIFIERS | EVALUATION | {""}]
    match = _NAMES.fullmatch(" ".join(core))
    if match is None or match.lastgroup is None:
        return _throughput(words, unit) or _count(words)
    field = match.lastgroup
    if not EVALUATION.isdisjoint(words):
        return Meaning("eval_loss", len(words)) if field == "loss" else None
    is_term = field == "loss" and "loss" not in core  # "train loss 3.1 (ce 2.9)"
    return Meaning(field, len(words) + 10 * is_term, scale if field == "learning_rate" else 1.0)


def _throughput(words: list[str], unit: str) -> Meaning | None:
    """Return the meaning of a speed that is named by its unit."""
    if words[-1:] and words[-1] in ("throughput", "speed", "rate", "ips") and set(words[:-1]) <= _QUALIFIERS:
        unit_meaning = meaning(unit) if unit else None
        if unit_meaning is not None or (not unit and words[-1] == "throughput"):
            return Meaning(unit_meaning.field if unit_meaning else "tokens_per_s", 9)
    return None


def _count(words: list[str]) -> Meaning | None:
    name = " ".join(words).partition(" in ")[0]  # step_in_epoch
    is_total = name.startswith("total ") and name.endswith((" steps", " iterations", " updates"))
    if is_total and EVALUATION.isdisjoint(words):
        return Meaning("total_steps")
    while name not in _COUNTS and name.partition(" ")[0] in TRAINING | {"system"}:
        name = name.partition(" ")[2]
    return _COUNTS.get(name)
