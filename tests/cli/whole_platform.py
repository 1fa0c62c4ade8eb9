"""A platform with something for every command, and how it is furnished."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api_client.emulator.backend import StoredFile
from api_client.emulator.store.blobs import BUCKET
from api_client.emulator.store.deployments import StoredDeployment, StoredModel
from api_client.models import CachedFile, JobStatus
from support.archives import packed
from support.every_command import BROKEN, ENDED, INACTIVE, JOB, SERVING, SPARE, WAITING
from support.fake_backend import START
from support.faulty import FaultyServer
from support.served_platform import KEY, Served, counting_bytes, served_platform

NOISE = "429(retry-after=0);times=3"
"""The first requests are turned away: even one that changes something may be sent again then."""


CONFIG = """import os, sys, warnings
from truss_train import Compute, Image, Runtime, TrainingJob, TrainingProject
from truss.base.truss_config import AcceleratorSpec
print("words of the config")
os.system("echo words of its child")
print("more words", file=sys.__stdout__, flush=True)
compute = Compute(accelerator=AcceleratorSpec(accelerator="H100", count=8))
job = TrainingJob(image=Image(base_image="x"), compute=compute, runtime=Runtime(start_commands=["true"]))
project = TrainingProject(name="llama-sft", job=job)
"""


def furnish(served: Served) -> None:
    """Jobs that run, have ended and wait; a log, files, a cache and an archive, all with strange words."""
    backend, stores = served.backend, served.platform.stores
    served.clock.moment = now = datetime.now(UTC)
    times = {"created_at": now - timedelta(hours=1), "updated_at": now}
    backend.add(JOB, served.project_id, name="grüße\x1b[31m\n你好", **times)
    backend.add(ENDED, served.project_id, JobStatus.COMPLETED, **times)
    backend.add(WAITING, served.project_id, JobStatus.PENDING, **times)
    stamp = int((now - timedelta(minutes=30)).timestamp() * 1e9)
    backend.lines[JOB] = backend.lines[ENDED] = [
        {"timestamp": str(stamp + number), "message": text, "replica": "node-0"}
        for number, text in enumerate(("{'loss': 1.5, 'step': 1}", "two\x1b]0;x\x07\x9b31m", '"a",\r\nb'))
    ]
    backend.stored_files[JOB] = [
        StoredFile(f"checkpoint-100/{name}", 0, 9, START.isoformat(), generate=counting_bytes)
        for name in ("notes.txt", "a,b\x1b[2J.bin")
    ]
    backend.caches[served.project_id] = [CachedFile(path='hub/"model\x1b[1m,é.bin', size_bytes=3)]
    with stores.blobs.receive(BUCKET, "code.tgz") as incoming:
        incoming.write(packed({"train.py": b""}))
        incoming.commit()
    served.backend.add_archive(JOB, BUCKET, "code.tgz")
    with stores.blobs.receive(BUCKET, "ended.tgz") as incoming:
        incoming.write(packed({"config.py": CONFIG.encode(), "run.sh": b"ls $BT_LOAD_CHECKPOINT_DIR"}))
        incoming.commit()
    served.backend.add_archive(ENDED, BUCKET, "ended.tgz")
    furnish_deployments(served, now - timedelta(hours=1))


TRUSS_CONFIG = {
    "model_name": "tuned\x1b[31m",
    "model_metadata": {"example_model_input": {"model": "checkpoint-100"}},
    "resources": {"use_gpu": True},
    "base_image": {"image": "vllm"},
    "environment_variables": {},
    "secrets": {},
    "docker_server": {
        **{"start_command": "vllm serve", "server_port": 8000, "readiness_endpoint": "/health"},
        "predict_endpoint": "/v1/chat/completions",
    },
    "training_checkpoints": {
        "download_folder": "/tmp",
        "artifact_references": [{"training_job_id": JOB, "paths": ["rank-0/checkpoint-100/"]}],
    },
}


def furnish_deployments(served: Served, created: datetime) -> None:
    serving = StoredDeployment(
        SERVING, "model001", 1, created, "H100:2 52x468", TRUSS_CONFIG, (), ((created, None),)
    )
    broken = {"config": {**TRUSS_CONFIG, "resources": {"use_gpu": False}}, "machine_name": "no\x1b[2Jspace"}
    deployments = (
        serving,
        replace(serving, id=SPARE, number=2),
        replace(serving, id=INACTIVE, number=3, starts=((created, created),)),
        replace(serving, id=BROKEN, number=4, **broken),
    )
    (team,) = served.platform.stores.teams.all()
    model = StoredModel("model001", team.id, "tuned\x1b[31m\nmodel", created, deployments, 4, SERVING)
    served.platform.stores.models.put(model.id, model)


@contextmanager
def furnished(faulty: FaultyServer, folder: Path) -> Iterator[dict[str, str]]:
    """A platform with something for every command; gives the environment that leads to it."""
    faulty.set_faults("")
    with served_platform(faulty, folder) as served:
        furnish(served)
        leading = ("BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE")
        yield {"BASETEN_API_KEY": KEY, "NO_COLOR": "1", "BT_TUI_DEBUG": "1"} | dict.fromkeys(
            leading, faulty.url
        )
