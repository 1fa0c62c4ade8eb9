"""Simulated checkpoints: they appear as the run goes on, and their files hold what they promise."""

from __future__ import annotations

from collections import Counter

from fleet_worlds import World
from hypothesis import given, settings, strategies as st

from api_client.checkpoints import parse_trainer_state
from api_client.emulator.backend import StoredFile
from api_client.models.logs import LogLine
from tui.analysis.progress.fold import ProgressFold

LIVE = "llama-70b-sft-v3"


def read(file: StoredFile, start: int, end: int) -> bytes:
    assert file.generate is not None
    return file.generate(start, end)


def files(world: World, name: str) -> list[StoredFile]:
    return world.fleet.checkpoint_files(world.named(name).id)


def test_checkpoints_are_of_every_kind_and_adapters_have_their_rank(still_world: World) -> None:
    saved = [each for job in still_world.fleet.jobs() for each in still_world.fleet.checkpoints(job.id)]
    assert all(each.created_at is not None and each.created_at <= still_world.now for each in saved)
    assert {each.checkpoint_type for each in saved} == {"full", "lora", "whisper"}
    for name, rank in (("llama-8b-lora-r16", 16), ("mistral-24b-dpo-1", 24)):
        config = still_world.fleet.checkpoints(still_world.named(name).id)[0].lora_adapter_config
        assert config is not None
        assert config["r"] == rank


def test_one_upload_is_under_way_and_the_job_says_so(world: World) -> None:
    for seconds, of_job, of_last in ((0, "SYNCING", "SYNCING"), (3600, "COMPLETED", "COMPLETE")):
        job = world.after(seconds).named("qwen3-8b-sft")
        assert job.checkpoint_sync_status == of_job
        assert world.fleet.checkpoints(job.id)[-1].sync_status == of_last


def test_the_files_of_all_nodes_are_listed_and_add_up(still_world: World) -> None:
    for name in (LIVE, "qwen3-grpo-5", "qwen3-14b-titan", "whisper-large-ft-2"):
        listed = files(still_world, name)
        sizes: Counter[str] = Counter()
        for file in listed:
            sizes[file.relative_name.partition("/")[0]] += file.size_bytes
        saved = still_world.fleet.checkpoints(still_world.named(name).id)
        assert sizes == {each.checkpoint_id: each.size_bytes for each in saved}
        nodes = still_world.named(name).node_count or 1
        assert {file.node_rank for file in listed} == set(range(nodes))
    assert len(files(still_world, "llama-70b-sft-v2")) > 5000
    (only,) = still_world.fleet.checkpoints(still_world.named("retrieval-embed-v4").id)
    assert only.checkpoint_id == "."
    assert "model.safetensors" in {file.relative_name for file in files(still_world, "retrieval-embed-v4")}


@settings(max_examples=25)
@given(st.data())
def test_ranges_are_cut_from_one_file(still_world: World, data: st.DataObject) -> None:
    listed = [file for file in files(still_world, "llama-8b-lora-r16") if file.size_bytes > 400_000]
    file = data.draw(st.sampled_from(listed))
    start, middle, end = sorted(data.draw(st.tuples(*[st.integers(0, 200_000)] * 3)))
    whole = read(file, start, end)
    assert len(whole) == end - start
    assert read(file, start, middle) + read(file, middle, end) == whole
    assert len(read(file, file.size_bytes - 5, file.size_bytes + 100)) == 5


def test_loss_in_trainer_state_is_that_of_its_step_in_the_log(still_world: World) -> None:
    name = "checkpoint-500/trainer_state.json"
    (file,) = [file for file in files(still_world, LIVE) if file.relative_name == name]
    kept = dict(parse_trainer_state(read(file, 0, file.size_bytes)).curve("loss"))
    fold = ProgressFold()
    fold.add(
        LogLine(int(line["timestamp"]), line["message"], line["replica"], line["level"])
        for line in still_world.lines(LIVE)
    )
    logged = dict(fold.snapshot().loss_by_step)
    assert kept
    assert {step: logged[step] for step in kept} == kept
