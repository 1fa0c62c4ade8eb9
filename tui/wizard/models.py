"""The questions for the base model, the LoRA rank and the model's name."""

from __future__ import annotations

from dataclasses import replace

from api_client.deployment import VALID_LORA_RANKS, adapter_ranks, check_rank, kind_of
from tui.insight.text import inert
from tui.wizard.derived import advised_rank, inferred_base_model, is_lora, proposed_model_name
from tui.wizard.state import BASE_MODEL, LORA_RANK, MODEL_NAME, WizardState
from tui.wizard.step import Answer, Choice, Step

NOT_SENT = "It stands in the config; the platform itself goes by the adapter's"


def base_model_step(state: WizardState) -> Step:
    """The base model: of a LoRA it must be known, of others it may be left out."""
    required = is_lora(state)
    inferred = inferred_base_model(state)
    answer = state.answers.base_model
    if inferred:
        remark = "as the checkpoint names it"
    elif required:
        remark = "The checkpoint does not name it, and an adapter cannot be served without it."
    else:
        remark = "Optional: the checkpoint holds all weights."
    return Step(
        id=BASE_MODEL,
        title="Base model",
        question="Which base model?" if required else "Which base model? (may be empty)",
        kind="text",
        flag="--base-model",
        answer=answer,
        default=answer if answer is not None else inferred,
        remark=remark,
        check=lambda given: _base_model_problem(given, required=required),
        put=lambda before, given: _put_base_model(before, str(given)),
        is_given=BASE_MODEL in state.given,
    )


def rank_step(state: WizardState) -> Step:
    """The largest rank that is served. The adapters' own decides the default and the smallest allowed."""
    ranks = adapter_ranks(state.chosen)
    advice = advised_rank(state)
    answer = state.answers.lora_rank
    present = answer if isinstance(answer, int | str) and not isinstance(answer, bool) else None
    choices = tuple(
        Choice(str(rank), str(rank), disabled_reason=check_rank(rank, ranks)) for rank in VALID_LORA_RANKS
    )
    return Step(
        id=LORA_RANK,
        title="LoRA rank",
        question="Which LoRA rank?",
        kind="number",
        flag="--lora-rank",
        choices=choices,
        answer=present,
        default=present if present is not None else advice.default,
        remark=f"{advice.explanation}. {NOT_SENT}".replace(".. ", ". ").strip(" ."),
        refusal=advice.refusal,
        check=lambda given: check_rank(given, ranks),
        put=lambda before, given: replace(before, answers=replace(before.answers, lora_rank=given)),
        is_given=LORA_RANK in state.given,
    )


def model_name_step(state: WizardState) -> Step:
    """What the model is called."""
    answer = state.answers.model_name
    kinds = {kind_of(each) for each in state.chosen}
    return Step(
        id=MODEL_NAME,
        title="Model name",
        question="What is the model called?",
        kind="text",
        flag="--model-name",
        answer=answer,
        default=answer if answer is not None else proposed_model_name(state),
        remark="from the base model's name" if kinds == {"lora"} else "",
        check=_model_name_problem,
        put=lambda before, given: replace(before, answers=replace(before.answers, model_name=str(given))),
        is_given=MODEL_NAME in state.given,
    )


def _put_base_model(state: WizardState, base_model: str) -> WizardState:
    """A name that was merely agreed to follows the base model."""
    answers = replace(state.answers, base_model=base_model)
    if MODEL_NAME not in state.given and answers.model_name == proposed_model_name(state):
        answers = replace(answers, model_name=None)
    return replace(state, answers=answers)


def _base_model_problem(answer: Answer, *, required: bool) -> str:
    if not isinstance(answer, str):
        return "name the base model" if required else ("" if answer is None else "a base model is a name")
    if not answer:
        return "a LoRA needs its base model; write it as on Hugging Face: owner/name" if required else ""
    if any(letter.isspace() for letter in answer):
        return "a base model's name has no spaces; write it as on Hugging Face: owner/name"
    return _unprintable(answer, "a base model's name")


def _model_name_problem(answer: Answer) -> str:
    if not isinstance(answer, str) or not answer:
        return "give the model a name"
    return _unprintable(answer, "a model's name")


def _unprintable(text: str, what: str) -> str:
    return "" if inert(text) == text else f"{what} has no control characters"
