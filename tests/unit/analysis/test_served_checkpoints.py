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
        *(({"training_checkpoints": one}, []) for one in ({"artifact_references": "x"}, None)),
        *((one, []) for one in ({}, None)),
    ],
)
def test_checkpoints_are_named_as_their_job_names_them(config: Any, served: list[str]) -> None:
    assert served_checkpoints(config) == tuple(("j", name) for name in served)


def test_whisper_is_called_in_its_own_way() -> None:
    paths = "/v1/audio/transcriptions", "/v1/chat/completions"
    assert [transcribes({"docker_server": {"predict_endpoint": one}}) for one in paths] == [True, False]
    assert not transcribes({"docker_server": None}) and not transcribes(None)
