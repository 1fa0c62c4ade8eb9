"""What the pre-flight says of where a job reads and writes its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from preflight_listed import SAVED, Listing, cached, listing, problems, project

from api_client.definitions import LoadCheckpointConfig, WeightsSource
from api_client.submission.preflight import check


@pytest.mark.parametrize(
    ("source", "on_emulator", "severity"),
    [
        *((f"{scheme}://bucket/path", False, None) for scheme in ("hf", "s3", "gs", "r2", "cw")),
        *((f"{scheme}://bucket/path", False, "warning") for scheme in ("azure", "https")),
        ("file:///data/model", False, "error"),
        ("file:///data/model", None, "warning"),
        ("file:///data/model", True, None),
        ("azure://bucket/path", True, None),
    ],
)
def test_sources_that_baseten_does_not_read(
    source: str, on_emulator: bool | None, severity: str | None
) -> None:
    weights = [WeightsSource(source=source, mount_location="/models/base")]
    found = check(project("sleep 1", weights=weights), Listing(), on_emulator=on_emulator)
    here = [("info", "runtime.start_commands")] if on_emulator else []
    assert [(each.severity, each.field) for each in found] == (
        [(severity, "weights[0].source")] if severity else here
    )


MOUNTED: dict[str, Any] = {"cache_config": cached()}
LOADS: dict[str, Any] = {"load_checkpoint_config": LoadCheckpointConfig(enabled=True)}
PROBLEM = "runtime.start_commands: writes to {}, which Baseten does not manage"


@pytest.mark.parametrize(
    ("command", "more", "paths"),
    [
        ("echo hi 2>&1 | tee -a /root/log.txt", {}, "/root/log.txt"),
        ("mkdir -p /tmp/a /data/b && cp -r /tmp/in /root/out", {}, "/tmp/a, /root/out"),
        ("HF_HOME=/root/hf x --output_dir=/tmp/out --save-path /tmp/s", {}, "/root/hf, /tmp/out, /tmp/s"),
        ("sleep 1", {"environment_variables": {"HF_HOME": "/root/hf"}}, "/root/hf"),
        ("mkdir /tmp/a /tmp/b /tmp/c /tmp/d", {}, "/tmp/a, /tmp/b, /tmp/c and 1 more"),
        ("mkdir /root/.cache/x", MOUNTED, None),
        ("mkdir /tmp/loaded_checkpoints/x", LOADS, None),
        ("cat /tmp/in > $BT_SCRATCH_DIR/out; mkdir /tmpfs; ls /root", {}, None),
        ("PATH=/root/bin:$PATH x --data_dir /tmp/in > /dev/null", {}, None),
        ("echo '> /tmp/x'", {}, None),
    ],
)  # fmt: skip
def test_temporary_files_outside_of_the_scratch_folder(
    command: str, more: dict[str, Any], paths: str | None
) -> None:
    found = check(project(command, **more), Listing())
    assert problems(found, "warning") == ([PROBLEM.format(paths)] if paths else [])


def test_what_a_script_of_the_archive_writes_counts_too(tmp_path: Path) -> None:
    plan = listing(tmp_path, "run.sh", "unused.sh")
    (tmp_path / "run.sh").write_text("#!/bin/bash\nset -e\nmkdir -p /tmp/here\n")
    (tmp_path / "unused.sh").write_text("mkdir /tmp/there\n")
    assert problems(check(project("bash run.sh"), plan), "warning") == [PROBLEM.format("/tmp/here")]


LAUNCH = "torchrun --nproc_per_node 8 -m train"


@pytest.mark.parametrize(
    ("command", "more", "remarks"),
    [
        (LAUNCH, MOUNTED, True),
        (f"pip install x && OMP_NUM_THREADS=4 exec {LAUNCH}", MOUNTED, True),
        (f"python -m data && {LAUNCH}", MOUNTED, False),
        (f"hf download x && {LAUNCH}", MOUNTED, False),
        (LAUNCH, {}, False),
        (LAUNCH, {**MOUNTED, "gpus": "H100"}, False),
    ],
)
def test_processes_that_all_load_the_data_are_remarked_on(
    command: str, more: dict[str, Any], remarks: bool
) -> None:
    options = {"gpus": "H100:8", "checkpointing_config": SAVED, **more}
    found = check(project(command, **options), Listing())
    assert [each.severity for each in found] == (["info"] if remarks else [])
    assert all("loads the data" in each.problem for each in found)
