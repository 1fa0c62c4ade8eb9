"""Which checkpoints can be deployed, and which of them together."""

from __future__ import annotations

import pytest
from deployable import checkpoint

from api_client.models import Checkpoint, CheckpointFile
from api_client.servable import check_selection, kind_of, why_not_deployable


def files(*names: str) -> list[CheckpointFile]:
    return [CheckpointFile(url="https://x.test", relative_file_name=name) for name in names]


LORA, OTHER_LORA = checkpoint("a"), checkpoint("b")
FULL, WHISPER = checkpoint("f", "full"), checkpoint("w", "whisper")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (None, "unknown type nothing"),
        ("diffusion", "unknown type 'diffusion'; only lora, full and whisper"),
        ("x" * 10_000, "unknown type"),
    ],
)
def test_another_type_cannot_be_chosen(kind: str | None, reason: str) -> None:
    assert kind_of(checkpoint("x", kind)) == "other"
    assert reason in why_not_deployable(checkpoint("x", kind))
    assert len(why_not_deployable(checkpoint("x", kind))) < 250


@pytest.mark.parametrize(
    ("names", "why_not"),
    [
        ("__0_0.distcp __1_0.distcp .metadata train_state.json", "FSDP"),
        ("pytorch_model_fsdp_0/__0_0.distcp", "FSDP"),
        ("pytorch_model_fsdp.bin", "FSDP"),
        ("actor/model_world_size_8_rank_3.pt actor/fsdp_config.json actor/huggingface/config.json", "FSDP"),
        ("/rank-0/f/__0_0.distcp", "FSDP"),
        ("global_step5/mp_rank_00_model_states.pt", "FSDP"),
        ("trainer_state.json optimizer.pt rng_state_0.pth", "trainer state"),
        ("state/optimizer.bin", "trainer state"),
        ("model-00001-of-00002.safetensors optimizer.pt __0_0.distcp", ""),
        ("consolidated.00.pth", ""),
        ("/./f/model.safetensors trainer_state.json", ""),
        ("/rank-1/f/model.safetensors /rank-0/f/optimizer.pt", ""),
        ("something.else", ""),
        ("/ff/__0_0.distcp /x/f/__0_0.distcp", ""),
        ("", ""),
    ],
)
def test_shards_and_a_trainer_s_state_cannot_be_chosen_but_weights_beside(names: str, why_not: str) -> None:
    listed = [name.removeprefix("/") if name.startswith("/") else f"f/{name}" for name in names.split()]
    beside = files("other/model.safetensors", *listed)
    told = why_not_deployable(FULL, beside)
    assert (why_not in told) if why_not else told == ""
    assert bool(check_selection([FULL], iter(beside))) == bool(why_not)


def test_the_root_is_judged_by_what_lies_directly_in_it() -> None:
    root = checkpoint(".", "full")
    assert why_not_deployable(root, files("checkpoint-1/__0_0.distcp", "model.safetensors")) == ""
    assert "FSDP" in why_not_deployable(root, files("checkpoint-1/model.safetensors", "__0_0.distcp"))


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ([], "at least one"),
        ([FULL, LORA], "'f' has full weights"),
        ([FULL, checkpoint("g", "full")], "only LoRA checkpoints"),
        ([WHISPER, LORA], "'w' has Whisper weights"),
        ([LORA, checkpoint("u", "diffusion")], "'u': unknown type 'diffusion'"),
        ([LORA, OTHER_LORA], ""),
        ([checkpoint(".", "full")], ""),
        ([LORA, checkpoint("b", sync_status="SYNCING")], "'b': still uploading"),
        ([LORA, checkpoint(".")], "'.' is the checkpoint folder itself"),
        ([LORA, LORA], "selected twice"),
        ([LORA, checkpoint("b", base="Qwen/Qwen3-8B")], "different base models"),
    ],
)
@pytest.mark.proves("docs/commands.md", "Inspect, download and deploy checkpoints")
def test_what_can_be_served_together_and_why_the_rest_cannot(chosen: list[Checkpoint], reason: str) -> None:
    problem = check_selection(chosen)
    assert reason in problem
    assert bool(problem) == bool(reason)
