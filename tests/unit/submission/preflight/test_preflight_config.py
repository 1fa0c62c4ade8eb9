"""What the pre-flight says of a configuration and of its archive, without an account."""

from pathlib import Path
from typing import Any

import pytest
from preflight_listed import EXECUTABLE, PLAIN, SAVED, Listing, cached, listing, problems, project

from api_client import definitions as d
from api_client.submission.preflight import check

SESSION = d.InteractiveSession(trigger=d.InteractiveSessionTrigger.ON_STARTUP)


@pytest.mark.parametrize(
    ("commands", "more", "archive", "severities"),
    [
        (["bash run.sh"], {}, {}, []),
        ([], {}, {}, ["error"]),
        (["  ", "\n"], {}, {}, ["error"]),
        ([], {"interactive_session": SESSION}, {}, ["warning"]),
        (["sleep 1"], {"gpus": "H100"}, {}, []),
        (["./gone.sh"], {"enable_baseten_workdir": False}, {}, ["warning"]),
        (["python run.sh", "python made.py"], {}, {}, ["warning"]),
        (["sleep 1"], {}, {"warnings": ["lib/ was left out"]}, ["warning"]),
    ],
)
@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_what_may_be_meant_is_a_warning_at_most(tmp_path, commands, more, archive, severities):
    found = check(project(*commands, **more), listing(tmp_path, "run.sh", **archive))
    assert [each.severity for each in found] == severities


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"nodes": 2}, "2 × CPU"),
        ({"gpus": "H100:2"}, "H100:2"),
        ({"gpus": "H100:8", "nodes": 4}, "4 × H100:8"),
        ({"availability_model": d.AvailabilityModel.SPOT}, "preempted"),
    ],
)
def test_much_to_lose_without_checkpoints_is_a_warning(more, word):
    (warning,) = problems(check(project("sleep 1", **more), Listing()), "warning")
    assert warning.startswith("runtime.checkpointing_config: checkpointing is off")
    assert word in warning
    saved = check(project("sleep 1", checkpointing_config=SAVED, **more), Listing())
    assert problems(saved, "warning") == []


def test_unknown_fields_are_named():
    job = project("sleep 1")
    job.job.compute = d.Compute(accelerator=d.AcceleratorSpec(accelerator="H100", cuont=8))
    assert problems(check(job, Listing()), "warning") == [
        "compute.accelerator.cuont: unknown to the API; sent anyway, and probably ignored"
    ]


@pytest.mark.parametrize(
    ("commands", "script"),
    [
        (["./run.sh"], "run.sh"),
        (["bash -eux scripts/run.sh --flag value"], "scripts/run.sh"),
        (["source setup.sh"], "setup.sh"),
        (["python3.12 -u src/train.py"], "src/train.py"),
        (["LR=1e-4 nohup python train.py > out.txt 2>&1"], "train.py"),
        (["cd src && python train.py"], "src/train.py"),
        (["cd src", "python ../train.py"], "train.py"),
        (["cd /b10/workspace/src; ./go"], "src/go"),
        (["torchrun --nproc_per_node 8 --master_addr $BT_LEADER_ADDR train.py --lr 3"], "train.py"),
        (["python -m torch.distributed.run --nnodes 2 train.py"], "train.py"),
        (["accelerate launch --config_file x.yaml train.py"], "train.py"),
        (["uv run train.py"], "train.py"),
        (["pip install -r requirements.txt", "# it's a comment\npython \\\n  train.py"], "train.py"),
        (["echo 'two\nlines'\npython train.py"], "train.py"),
    ],
)
def test_a_script_that_is_not_in_the_archive_is_an_error(commands, script, tmp_path):
    missing = check(project(*commands), listing(tmp_path, "other.py"))
    assert problems(missing, "error") == [f"runtime.start_commands: {script} is not in the archive"]
    assert problems(check(project(*commands), listing(tmp_path, script, mode=EXECUTABLE)), "error") == []


@pytest.mark.parametrize(
    "command",
    [
        *("python -m pytest", "python -c 'print(1)'", "bash -c './anything.sh'", "/opt/tool/run.sh"),
        *("./$SCRIPT; ./run-*.sh; ~/run.sh", "cd $WHEREVER && ./run.sh", "cd /elsewhere && ./run.sh"),
        *("cd .. && ./run.sh", ".venv/bin/pip install x; source .venv/bin/activate"),
        *("echo 'echo hi' > made.sh && bash made.sh", "echo 'an open quote"),
        "cat <<END > x.py\n./not-a-command.sh\nEND",
        "if [ -e extra.sh ]; then ./extra.sh; fi",
        "git clone https://example.com/a.git && cd a && python train.py",
    ],
)
def test_what_cannot_be_known_is_no_error_and_asks_nothing(command):
    found = check(project(command), Listing())
    assert problems(found, "error") + problems(found, "warning") == []


def test_a_script_that_the_ignore_rules_took_says_so():
    plan = Listing(dropped=[("build/", "ignored by the built-in rule build/")])
    (found, _listed) = check(project("bash build/run.sh"), plan)
    assert found.severity == "error"
    assert found.problem == "build/run.sh is not in the archive: ignored by the built-in rule build/"
    assert ".truss_ignore" in found.remedy


@pytest.mark.parametrize(
    ("command", "is_executable"),
    [
        ("exec ./run.sh", False),
        *(
            (f"chmod {given} && ./run.sh", True)
            for given in ("u+x run.sh", "755 run.sh", "-R a+rx .", "+x *.sh")
        ),
        ("bash ./run.sh", True),
    ],
)
def test_a_script_that_cannot_be_executed_is_an_error_unless_it_is_made_executable(
    command, is_executable, tmp_path
):
    found = check(project(command), listing(tmp_path, "run.sh", mode=PLAIN))
    expected = [] if is_executable else ["runtime.start_commands: run.sh is not executable"]
    assert problems(found, "error") == expected


def test_what_is_left_out_and_what_was_odd_is_told_gravest_first():
    plan = Listing(
        dropped=[(f"old{number}.log", "ignored by the built-in rule *.log") for number in range(7)],
        warnings=["lib/ was left out"],
    )
    found = check(project(), plan)
    assert [each.severity for each in found] == ["error", "warning", "info"]
    assert found[1].problem == "lib/ was left out"
    assert found[2].problem == "excluded: old0.log, old1.log, old2.log, old3.log, old4.log and 2 more"


@pytest.mark.parametrize(
    ("begins", "on_emulator", "expected"),
    [
        ("hf:// s3:// gs:// r2:// cw://", False, []),
        ("azure:// https://", False, [("warning", "weights[0].source")]),
        ("file:/// azure://", True, [("info", "runtime.start_commands")]),
    ],
)
def test_sources_that_baseten_does_not_read(begins, on_emulator, expected):
    for begin in begins.split():
        weights = [d.WeightsSource(source=f"{begin}bucket/path", mount_location="/models/base")]
        found = check(project("sleep 1", weights=weights), Listing(), on_emulator=on_emulator)
        assert [(each.severity, each.field) for each in found] == expected


MOUNTED: dict[str, Any] = {"cache_config": cached()}
LOADS: dict[str, Any] = {"load_checkpoint_config": d.LoadCheckpointConfig(enabled=True)}
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
def test_temporary_files_outside_of_the_scratch_folder(command, more, paths):
    found = check(project(command, **more), Listing())
    assert problems(found, "warning") == ([PROBLEM.format(paths)] if paths else [])


def test_what_a_script_of_the_archive_writes_counts_too_and_windows_line_endings(tmp_path: Path) -> None:
    plan = listing(tmp_path, "run.sh", "unused.sh")
    (tmp_path / "run.sh").write_text("#!/bin/bash\nset -e\nmkdir -p /tmp/here\n")
    (tmp_path / "unused.sh").write_text("mkdir /tmp/there\n")
    assert problems(check(project("bash run.sh"), plan), "warning") == [PROBLEM.format("/tmp/here")]
    (tmp_path / "run.sh").write_bytes(b"#!/bin/bash\r\necho hi\r\n")
    (warning,) = problems(check(project("bash run.sh"), plan), "warning")
    assert "CRLF" in warning


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
def test_processes_that_all_load_the_data_are_remarked_on(command, more, remarks):
    options = {"gpus": "H100:8", "checkpointing_config": SAVED, **more}
    found = check(project(command, **options), Listing())
    assert [each.severity for each in found] == (["info"] if remarks else [])
    assert all("loads the data" in each.problem for each in found)
