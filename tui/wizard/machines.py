"""The question for the GPUs, out of the account's instance types."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from api_client.definitions.accelerators import offered_accelerators
from api_client.deployment import ListedInstance, fitting_instances, memory_hint, needed_gpu_bytes
from api_client.deployment.instance_choice import gpu_name
from api_client.models import Checkpoint
from tui.insight.units import HOUR_S, MINUTE_S, bytes_iec, money
from tui.wizard.state import GPU, WizardState
from tui.wizard.step import Answer, Choice, Step, listed

_GPU_ANSWER = re.compile(r"(?P<type>[^:\s]+)(?::(?P<count>[1-9][0-9]{0,2}))?", re.ASCII)
HEADROOM = 1.25
"""Room for activations and the KV cache, next to the weights."""
MIB = 1024 * 1024


def gpu_step(state: WizardState) -> Step:
    """Which GPUs. The smallest instance that holds the weights is proposed."""
    choices = tuple(_choice(instance) for instance in offers(state.facts.instances))
    answer = state.answers.gpu
    refusal = ""
    if not choices:
        refusal = "the account has no instance type with GPUs to deploy on"
    elif all(choice.disabled_reason for choice in choices):
        types = listed(list(dict.fromkeys(choice.value for choice in choices)))
        refusal = f"config files have no name for the account's GPU types: {types}"
    return Step(
        id=GPU,
        title="GPU",
        question="Which GPUs?",
        kind="choice",
        flag="--gpu",
        choices=choices,
        answer=answer,
        default=_normal(answer) if answer is not None else _proposed(state),
        remark=memory_hint(_chosen_with_base(state)),
        refusal=refusal,
        check=lambda given: _gpu_problem(state, choices, given),
        put=lambda before, given: replace(before, answers=replace(before.answers, gpu=_normal(str(given)))),
        is_given=GPU in state.given,
    )


def parse_gpu(text: str) -> tuple[str, int] | None:
    """``H100:2`` → ``("H100", 2)``, ``H100`` → one of it; None for anything else.

    Types are written as config files write them: ``A100_40GB``, though instance types say ``A100-40GB``.
    """
    match = _GPU_ANSWER.fullmatch(text.strip())
    return (gpu_name(match["type"]), int(match["count"] or "1")) if match else None


def chosen_instance(state: WizardState) -> ListedInstance | None:
    """The smallest instance for the answer; None if there is none, or no answer."""
    gpu = parse_gpu(state.answers.gpu or "")
    return smallest(state.facts.instances, *gpu) if gpu else None


def smallest(instances: Sequence[ListedInstance], gpu_type: str, count: int) -> ListedInstance | None:
    """The smallest instance with that many GPUs of that type."""
    return next(iter(fitting_instances(instances, gpu_type, count)), None)


def price_an_hour(instance: ListedInstance) -> str:
    """``$6.50 an hour``; empty where no price is known."""
    price = instance.price
    return f"{money(price * HOUR_S / MINUTE_S)} an hour" if price is not None else ""


def offers(instances: Sequence[ListedInstance]) -> list[ListedInstance]:
    """For each GPU type and count the instance that a deployment would get; cheapest first."""
    sizes = {(gpu_name(each.gpu_type or ""), each.gpu_count) for each in instances if each.gpu_type}
    found = {size: smallest(instances, *size) for size in sizes if size[1] > 0}
    exact = [each for size, each in found.items() if each is not None and each.gpu_count == size[1]]
    return sorted(exact, key=_cheapest_first)


def _cheapest_first(instance: ListedInstance) -> tuple[float, int, str, int]:
    price = instance.price if instance.price is not None else math.inf
    return (price, memory_bytes(instance), instance.gpu_type or "", instance.gpu_count)


def _choice(instance: ListedInstance) -> Choice:
    gpu_type = gpu_name(instance.gpu_type or "")
    memory = memory_bytes(instance)
    parts = (price_an_hour(instance), bytes_iec(memory) if memory else "", instance.name)
    hint = " · ".join(part for part in parts if part)
    known = gpu_type in offered_accelerators()
    reason = "" if known else "config files have no name for this GPU type"
    return Choice(_value(instance), f"{instance.gpu_count} × {gpu_type}", hint, reason)


def _value(instance: ListedInstance) -> str:
    return f"{gpu_name(instance.gpu_type or '')}:{instance.gpu_count}"


def memory_bytes(instance: ListedInstance) -> int:
    """The memory of all its GPUs in bytes; 0 where it is not known."""
    return (instance.gpu_memory_limit_mib or 0) * MIB * instance.gpu_count


def _chosen_with_base(state: WizardState) -> list[Checkpoint]:
    """The chosen checkpoints, on the base model that was answered: its name tells how large it is."""
    answered = state.answers.base_model
    return [each.model_copy(update={"base_model": answered}) if answered else each for each in state.chosen]


def _proposed(state: WizardState) -> str | None:
    """The cheapest that holds the weights with some headroom, else the one with the most memory."""
    known = offered_accelerators()
    usable = [each for each in offers(state.facts.instances) if gpu_name(each.gpu_type or "") in known]
    if not usable:
        return None
    need = (needed_gpu_bytes(_chosen_with_base(state)) or 0) * HEADROOM
    best = next((each for each in usable if memory_bytes(each) >= need), None)
    return _value(best or max(usable, key=memory_bytes))


def _gpu_problem(state: WizardState, choices: tuple[Choice, ...], answer: Answer) -> str:
    gpu = parse_gpu(answer) if isinstance(answer, str) else None
    if gpu is None:
        return "choose GPUs, written as TYPE:COUNT, for example H100:2"
    gpu_type, count = gpu
    if gpu_type not in offered_accelerators():
        return f"there is no GPU type {gpu_type}; there is {listed([choice.value for choice in choices])}"
    instance = smallest(state.facts.instances, gpu_type, count)
    if instance is None or instance.gpu_count != count:
        has = listed([choice.value for choice in choices if not choice.disabled_reason])
        return f"no instance type has {count} × {gpu_type}; there is {has}"
    return ""


def _normal(text: str) -> str:
    gpu = parse_gpu(text)
    return f"{gpu[0]}:{gpu[1]}" if gpu else text
