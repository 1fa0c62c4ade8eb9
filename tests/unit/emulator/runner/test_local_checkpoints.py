"""Checkpoints that jobs write."""

from __future__ import annotations

import os

from local_world import LocalWorld, job_spec

from api_client.models import JobStatus

ENABLED = {"checkpointing_config": {"enabled": True}}

LORA = """
cd "$BT_CHECKPOINT_DIR"
mkdir checkpoint-10 && printf 1234 > checkpoint-10/adapter_model.safetensors
echo '{"r": 24, "base_model_name_or_path": "acme/base"}' > checkpoint-10/adapter_config.json
"""


OTHERS = """
mkdir -p full/nested && printf 12 > full/nested/model.bin
mkdir whisper && echo '{"architectures": ["WhisperForConditionalGeneration"]}' > whisper/config.json
mkdir empty .hidden && echo x > .hidden/file
mkdir broken && echo '{"r": 24,' > broken/adapter_config.json
ln -s /etc/passwd full/link
echo '{}' > config.json
"""


async def test_checkpoints_are_described_by_what_is_in_them(world: LocalWorld) -> None:
    job = await world.run("job1", job_spec(LORA + OTHERS, **ENABLED))
    assert job.current_status == JobStatus.COMPLETED
    assert job.checkpoint_sync_status == "COMPLETED"
    found = {checkpoint.checkpoint_id: checkpoint for checkpoint in world.backend.checkpoints("job1")}
    assert set(found) == {"checkpoint-10", "full", "whisper", "broken", "."}
    lora = found["checkpoint-10"]
    assert (lora.checkpoint_type, lora.base_model, lora.sync_status) == ("lora", "acme/base", "COMPLETE")
    assert (lora.lora_adapter_config or {})["r"] == 24
    assert (found["full"].checkpoint_type, found["full"].size_bytes) == ("full", 2)
    assert found["whisper"].checkpoint_type == "whisper"
    files = world.backend.checkpoint_files("job1")
    names = {file.relative_name for file in files}
    assert {"checkpoint-10/adapter_config.json", "full/nested/model.bin", "config.json"} <= names
    assert not any("link" in name or "hidden" in name for name in names)
    assert all(file.path is not None and file.path.stat().st_size == file.size_bytes for file in files)


async def test_a_checkpoint_is_seen_while_it_is_written(world: LocalWorld) -> None:
    await world.create("job1", job_spec(LORA + "echo written; sleep 1000", **ENABLED))
    await world.said("job1", "written")
    (checkpoint,) = world.backend.checkpoints("job1")
    assert checkpoint.sync_status == "SYNCING"
    assert world.backend.job("job1").checkpoint_sync_status == "SYNCING"
    for file in world.backend.checkpoint_files("job1"):
        assert file.path is not None
        os.utime(file.path, (1_700_000_000, 1_700_000_000))
    await world.until(lambda: world.backend.job("job1").checkpoint_sync_status == "COMPLETED")
    assert world.backend.checkpoints("job1")[0].sync_status == "COMPLETE"
