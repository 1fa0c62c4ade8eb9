"""The questions for GPUs, the Hugging Face token, environment variables and secrets."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from api_client.definitions.compute import offered_accelerators
from api_client.definitions.job_request import normal_gpu_type
from api_client.deployment import (
    ListedInstance,
    fitting_instances,
    memory_hint,
    needed_gpu_bytes,
    stored_weight_bytes,
)
from api_client.models import Checkpoint
from tui.text.names import listed
from tui.text.units import BYTES_PER_MIB, HOUR_S, MINUTE_S, bytes_iec, money
from tui.wizard.state import ENVIRONMENT, GPU, HF_SECRET, NO_SECRET, SECRETS, Pairs, WizardState, is_lora
from tui.wizard.step import NAMED_AT_MOST, Answer, Choice, Step

USUAL_HF_SECRET = "hf_access_token"
"""Name of the secret that the official tools propose."""

HF_VARIABLE = "HF_TOKEN"
GATED = ("meta-llama/", "google/gemma-2", "google/gemma-3")
"""Beginnings of the names of models that Hugging Face gives only to accounts that were granted access."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def hf_secret_step(state: WizardState) -> Step:
    names = state.facts.secret_names
    warning = "gated base model: needs a token" if gated_model(state) else ""
    none = Choice(NO_SECRET, "no token", "public weights only", warning=warning)
    choices = (*(Choice(name, name) for name in names), none) if names is not None else ()
    return Step(
        state,
        id=HF_SECRET,
        title="HF token",
        question="Which secret holds the Hugging Face token?",
        kind="choice" if names is not None else "text",
        flag="--hf-secret",
        choices=choices,
        proposed=_proposed_hf_secret(names),
        remark=f"Set as {HF_VARIABLE}. {_lack_of_secrets(state)}".rstrip(),
        check=lambda given: _secret_problem(names, given),
    )


def _lack_of_secrets(state: WizardState) -> str:
    """Return what to do if the names of the secrets are unknown, or if there are none; else nothing."""
    if state.facts.secret_names is None:
        return "Can't list the workspace's secrets; may be empty."
    if state.facts.secret_names:
        return ""
    store = state.facts.store_secret
    return "The workspace has no secrets" + (f"; store one: {store}" if store else ".")


def gated_model(state: WizardState) -> str:
    """Return the base model that must be downloaded with a token, unless a variable holds one; else empty."""
    base = state.answers.base_model or ""
    pairs = (*(state.answers.environment or ()), *(state.answers.secrets or ()))
    has_token = any(name == HF_VARIABLE for name, _value in pairs)
    return base if is_lora(state) and not has_token and base.startswith(GATED) else ""


def environment_step(state: WizardState) -> Step:
    return Step(
        state,
        id=ENVIRONMENT,
        title="Environment",
        question="Any environment variables?",
        kind="pairs",
        flag="--env",
        proposed=(),
        remark="NAME=value",
        check=lambda given: _variables_problem(given, taken=_taken(state, state.answers.secrets)),
    )


def secrets_step(state: WizardState) -> Step:
    names = state.facts.secret_names
    return Step(
        state,
        id=SECRETS,
        title="Secrets",
        question="Any variables from secrets?",
        kind="pairs",
        flag="--secret",
        choices=tuple(Choice(name, name) for name in names or ()),
        proposed=(),
        remark="NAME=secret",
        check=lambda given: _secrets_problem(state, given),
    )


def read_pair(text: str) -> tuple[str, str] | None:
    """Split ``NAME=value`` at the first ``=``; None if there is none."""
    name, equals, value = text.partition("=")
    return (name.strip(), value) if equals else None


def _proposed_hf_secret(names: tuple[str, ...] | None) -> str:
    """Return the usual name if such a secret exists, else a similar one, else NO_SECRET."""
    known = names or ()
    if USUAL_HF_SECRET in known:
        return USUAL_HF_SECRET
    return next((name for name in known if name.lower() in ("hf_token", "huggingface_token")), NO_SECRET)


def _taken(state: WizardState, others: Pairs | None) -> set[str]:
    hf = {HF_VARIABLE} if state.answers.hf_secret else set()
    return hf | {name for name, _value in others or ()}


def _pairs(answer: Answer) -> Pairs:
    if not isinstance(answer, tuple):
        return ()
    return tuple((each[0], each[1]) for each in answer if isinstance(each, tuple))


def _variables_problem(answer: Answer, *, taken: set[str]) -> str:
    if not isinstance(answer, tuple):
        return "use NAME=value pairs, or none"
    seen: set[str] = set()
    for each in answer:
        if not isinstance(each, tuple):
            return f"{each!r} is not NAME=value"
        name, value = each
        if not _VARIABLE.fullmatch(name):
            return f"{name!r} is not a variable name: use letters, digits and _, no digit first"
        if "\0" in value:
            return f"the value of {name} contains a NUL, which no variable can hold"
        if name in seen or name in taken:
            return f"{name} is set twice"
        seen.add(name)
    return ""


def _secrets_problem(state: WizardState, answer: Answer) -> str:
    problem = _variables_problem(answer, taken=_taken(state, state.answers.environment))
    if problem or not isinstance(answer, tuple):
        return problem
    for name, secret in _pairs(answer):
        if not secret:
            return f"choose a secret for {name}"
        problem = _secret_problem(state.facts.secret_names, secret)
        if problem:
            return problem
    return ""


def _secret_problem(names: tuple[str, ...] | None, answer: Answer) -> str:
    if not isinstance(answer, str):
        return "choose a secret, or none"
    if answer == NO_SECRET or names is None or answer in names:
        return ""
    has = f"it has {listed(list(names), NAMED_AT_MOST)}" if names else "it has none"
    return f"the workspace has no secret {answer!r}; {has}"


_GPU_ANSWER = re.compile(r"(?P<type>[^:\s]+)(?::(?P<count>[1-9][0-9]{0,2}))?", re.ASCII)
HEADROOM = 1.25
"""Memory factor for activations and the KV cache in addition to the weights."""


def gpu_step(state: WizardState) -> Step:
    """Ask for the GPUs; proposes the cheapest instance that holds the weights."""
    weights = stored_weight_bytes(state.chosen, state.facts.files)
    choices = tuple(_choice(instance, weights) for instance in offers(state.facts.instances))
    refusal = ""
    if not choices:
        refusal = "the account has no GPU instance type to deploy on"
    elif all(choice.disabled_reason for choice in choices):
        types = listed(list(dict.fromkeys(choice.value for choice in choices)), NAMED_AT_MOST)
        refusal = f"config files have no name for the account's GPU types: {types}"
    return Step(
        state,
        id=GPU,
        title="GPU",
        question="Which GPUs?",
        kind="choice",
        flag="--gpu",
        choices=choices,
        proposed=_proposed_machine(state),
        remark=memory_hint(_chosen_with_base(state)),
        refusal=refusal,
        check=lambda given: _gpu_problem(state, choices, given),
        put=lambda before, given: replace(
            before, answers=replace(before.answers, gpu=normal_gpu(str(given)))
        ),
    )


def parse_gpu(text: str) -> tuple[str, int] | None:
    """Parse ``H100:2`` to ``("H100", 2)`` and ``H100`` to one GPU; None for anything else.

    Types are spelled as in config files: ``A100_40GB``, although instance types use ``A100-40GB``.
    """
    match = _GPU_ANSWER.fullmatch(text.strip())
    return (normal_gpu_type(match["type"]), int(match["count"] or "1")) if match else None


def chosen_instance(state: WizardState) -> ListedInstance | None:
    """Return the smallest instance for the answer; None if there is none or no answer yet."""
    gpu = parse_gpu(state.answers.gpu or "")
    return smallest(state.facts.instances, *gpu) if gpu else None


def smallest(instances: Sequence[ListedInstance], gpu_type: str, count: int) -> ListedInstance | None:
    return next(iter(fitting_instances(instances, gpu_type, count)), None)


def price_an_hour(instance: ListedInstance) -> str:
    """Return ``$6.50 an hour``; empty if the price is unknown."""
    price = instance.price
    return f"{money(price * HOUR_S / MINUTE_S)} an hour" if price is not None else ""


def offers(instances: Sequence[ListedInstance]) -> list[ListedInstance]:
    """Return the instance that a deployment would get for each GPU type and count, cheapest first."""
    sizes = {(normal_gpu_type(each.gpu_type or ""), each.gpu_count) for each in instances if each.gpu_type}
    found = {size: smallest(instances, *size) for size in sizes if size[1] > 0}
    exact = [each for size, each in found.items() if each is not None and each.gpu_count == size[1]]
    return sorted(exact, key=_cheapest_first)


def _cheapest_first(instance: ListedInstance) -> tuple[float, int, str, int]:
    price = instance.price if instance.price is not None else math.inf
    return (price, memory_bytes(instance), instance.gpu_type or "", instance.gpu_count)


def _choice(instance: ListedInstance, weight_bytes: int | None) -> Choice:
    gpu_type = normal_gpu_type(instance.gpu_type or "")
    memory = memory_bytes(instance)
    parts = (
        price_an_hour(instance),
        bytes_iec(memory) if memory else "",
        _room(memory, weight_bytes),
        instance.name,
    )
    hint = " · ".join(part for part in parts if part)
    known = gpu_type in offered_accelerators()
    reason = "" if known else "config files have no name for this GPU type"
    return Choice(_value(instance), f"{instance.gpu_count} × {gpu_type}", hint, reason)


def _room(memory: int, weight_bytes: int | None) -> str:
    """Say if the weights fit, as far as their size and the memory are known."""
    if weight_bytes is None or not memory:
        return ""
    if weight_bytes > memory:
        return "smaller than the weights"
    return "fits" if weight_bytes * HEADROOM <= memory else ""


def _value(instance: ListedInstance) -> str:
    return f"{normal_gpu_type(instance.gpu_type or '')}:{instance.gpu_count}"


def memory_bytes(instance: ListedInstance) -> int:
    """Return the memory of all GPUs of the instance in bytes; 0 if unknown."""
    return (instance.gpu_memory_limit_mib or 0) * BYTES_PER_MIB * instance.gpu_count


def _chosen_with_base(state: WizardState) -> list[Checkpoint]:
    """Return the chosen checkpoints with the answered base model, whose name indicates its size."""
    answered = state.answers.base_model
    return [each.model_copy(update={"base_model": answered}) if answered else each for each in state.chosen]


def _proposed_machine(state: WizardState) -> str | None:
    """Return the cheapest instance that fits the weights with headroom, else the one with the most memory."""
    known = offered_accelerators()
    usable = [each for each in offers(state.facts.instances) if normal_gpu_type(each.gpu_type or "") in known]
    if not usable:
        return None
    stored = stored_weight_bytes(state.chosen, state.facts.files)
    need = (stored or needed_gpu_bytes(_chosen_with_base(state)) or 0) * HEADROOM
    best = next((each for each in usable if memory_bytes(each) >= need), None)
    return _value(best or max(usable, key=memory_bytes))


def _gpu_problem(state: WizardState, choices: tuple[Choice, ...], answer: Answer) -> str:
    gpu = parse_gpu(answer) if isinstance(answer, str) else None
    if gpu is None:
        return "choose GPUs as TYPE:COUNT, e.g. H100:2"
    gpu_type, count = gpu
    if gpu_type not in offered_accelerators():
        return f"no GPU type {gpu_type}; use {listed([choice.value for choice in choices], NAMED_AT_MOST)}"
    instance = smallest(state.facts.instances, gpu_type, count)
    if instance is None or instance.gpu_count != count:
        has = listed([choice.value for choice in choices if not choice.disabled_reason], NAMED_AT_MOST)
        return f"no instance type has {count} × {gpu_type}; use {has}"
    return ""


def normal_gpu(text: str) -> str:
    gpu = parse_gpu(text)
    return f"{gpu[0]}:{gpu[1]}" if gpu else text
