"""What a deployment's config says that it serves, whatever a server sends."""

from typing import Any

from tui.analysis.deployments import served_checkpoints, serves_transcriptions


def test_checkpoints_are_named_as_their_job_names_them() -> None:
    def served(references: Any) -> list[str]:
        found = served_checkpoints({"training_checkpoints": {"artifact_references": references}})
        assert {job for job, _ in found} <= {"j"}
        return [name for _, name in found]

    twice = ["rank-0/a/", "rank-0/a/", "rank-1/b/c"]
    assert served([{"training_job_id": "j", "paths": twice}]) == ["a", "b/c"]
    assert served([{"training_job_id": "j", "paths": ["rank-0/"]}]) == ["."]
    assert served([{"training_job_id": "j", "paths": None}, "text", None]) == served("x") == []
    assert served_checkpoints({"training_checkpoints": None}) == served_checkpoints(None) == ()


def test_whisper_is_called_in_its_own_way() -> None:
    paths = "/v1/audio/transcriptions", "/v1/chat/completions"
    assert [serves_transcriptions({"docker_server": {"predict_endpoint": one}}) for one in paths] == [
        True,
        False,
    ]
    assert not serves_transcriptions({"docker_server": None}) and not serves_transcriptions(None)
