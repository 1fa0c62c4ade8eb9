"""What the chosen checkpoints say about the questions that follow: what is proposed for each."""

from __future__ import annotations

from dataclasses import replace

from api_client.deployment import RankAdvice, adapter_ranks, kind_of, rank_for
from tui.wizard.state import BASE_MODEL, LORA_RANK, MODEL_NAME, WizardState


def is_lora(state: WizardState) -> bool:
    """Whether adapters were chosen."""
    return bool(state.chosen) and all(kind_of(each) == "lora" for each in state.chosen)


def advised_rank(state: WizardState) -> RankAdvice:
    """The rank for the chosen adapters, and why."""
    return rank_for(adapter_ranks(state.chosen))


def inferred_base_model(state: WizardState) -> str:
    """The first base model that a chosen checkpoint names; empty if none does (API facts, 7)."""
    return next((each.base_model for each in state.chosen if each.base_model), "")


def proposed_model_name(state: WizardState) -> str:
    """Of a LoRA the last part of its base model's name; else the job's name."""
    if is_lora(state):
        base = state.answers.base_model or inferred_base_model(state)
        return base.rstrip("/").rsplit("/", 1)[-1]
    return (state.job.name if state.job else None) or ""


def forget_stale(before: WizardState, after: WizardState) -> WizardState:
    """Take out of ``after`` what was merely agreed to in ``before`` and would be proposed no more.

    What somebody typed stays, whatever is chosen afterwards; what a file or an option gave stays, too.
    """
    old, given = before.answers, after.given
    answers = after.answers
    if BASE_MODEL not in given and old.base_model == inferred_base_model(before):
        answers = replace(answers, base_model=None)
    if LORA_RANK not in given and old.lora_rank == advised_rank(before).default:
        answers = replace(answers, lora_rank=None)
    if MODEL_NAME not in given and old.model_name == proposed_model_name(before):
        answers = replace(answers, model_name=None)
    return replace(after, answers=answers)
