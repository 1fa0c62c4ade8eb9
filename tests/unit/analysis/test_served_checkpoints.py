"""What a deployment's config says that it serves, whatever a server sends."""

from typing import Any

import pytest

from tui.analysis.deployments import served_checkpoints, transcribes


def references(*found: object) -> dict[str, Any]:
    return {"training_checkpoints": {"artifact_references": list(found)}}


@pytest.mark.parametrize(
    ("config", "served"),
    [
        (
            references({"training_job_id": "j", "paths": ["rank-0/a/", "rank-0/a/", "rank-1/b/c"]}),
            ["a", "b/c"],
        ),
        (references({"training_job_id": "j", "paths": ["rank-0/"]}), ["."]),
        (references({"training_job_id": "j", "paths": None}, "text", None), []),
        ({"training_checkpoints": {"artifact_references": "x"}}, []),
        ({"training_checkpoints": None}, []),
        ({}, []),
        (None, []),
    ],
)
def test_checkpoints_are_named_as_their_job_names_them(config: Any, served: list[str]) -> None:
    assert served_checkpoints(config) == tuple(("j", name) for name in served)


@pytest.mark.parametrize(
    ("config", "is_whisper"),
    [
        ({"docker_server": {"predict_endpoint": "/v1/audio/transcriptions"}}, True),
        ({"docker_server": {"predict_endpoint": "/v1/chat/completions"}}, False),
        ({"docker_server": None}, False),
        (None, False),
    ],
)
def test_whisper_is_called_in_its_own_way(config: Any, is_whisper: bool) -> None:
    assert transcribes(config) is is_whisper
