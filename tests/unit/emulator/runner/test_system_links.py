"""Links at absolute paths of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from api_client.emulator.runner.mounts import CannotLink, SystemLinks


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_a_link_and_the_folders_made_for_it_come_and_go(tmp_path: Path, target: Path) -> None:
    links = SystemLinks(tmp_path / "links.json")
    place = tmp_path / "a" / "b" / "c"
    links.make("job1", str(place), target)
    assert place.resolve() == target
    links.release("job1")
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "links.json").exists()


def test_two_jobs_share_a_link_and_a_third_cannot_have_it(tmp_path: Path, target: Path) -> None:
    links = SystemLinks(tmp_path / "links.json")
    place = tmp_path / "link"
    links.make("job1", str(place), target)
    links.make("job2", str(place), target)
    with pytest.raises(CannotLink, match="another job"):
        links.make("job3", str(place), tmp_path)
    links.release("job1")
    assert place.is_symlink()
    links.release("job2")
    assert not os.path.lexists(place)


def test_what_others_made_is_left_alone(tmp_path: Path, target: Path) -> None:
    links = SystemLinks(tmp_path / "links.json")
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    for name in ("file", "dangling", "target", "file/below"):
        with pytest.raises(CannotLink):
            links.make("job1", str(tmp_path / name), target)
    place = tmp_path / "a" / "link"
    links.make("job1", str(place), target)
    (tmp_path / "a" / "mine").touch()
    links.release("job1")
    assert (tmp_path / "a" / "mine").exists()
    assert (tmp_path / "dangling").is_symlink()


@pytest.mark.parametrize("path", ["relative", "/tmp/../etc/x", "/tmp/nul\0"])
def test_odd_paths_are_refused(tmp_path: Path, target: Path, path: str) -> None:
    with pytest.raises(CannotLink):
        SystemLinks(tmp_path / "links.json").make("job1", path, target)


def test_nothing_is_linked_inside_of_a_link(tmp_path: Path, target: Path) -> None:
    links = SystemLinks(tmp_path / "links.json")
    links.make("job1", str(tmp_path / "app"), target)
    with pytest.raises(CannotLink, match="inside"):
        links.make("job1", str(tmp_path / "app" / "models"), tmp_path)
    assert list(target.iterdir()) == []


def test_the_next_emulator_takes_away_what_a_killed_one_left(tmp_path: Path, target: Path) -> None:
    record = tmp_path / "links.json"
    place = tmp_path / "a" / "link"
    SystemLinks(record).make("job1", str(place), target)
    other = tmp_path / "b" / "link"
    killed = SystemLinks(record)
    killed.clear_leftovers()
    assert not (tmp_path / "a").exists()
    assert not record.exists()
    killed.make("job2", str(other), target)
    other.unlink()
    other.write_text("somebody's own by now")
    SystemLinks(record).clear_leftovers()
    assert other.read_text() == "somebody's own by now"


@pytest.mark.parametrize("content", ["", "[]", '{"/tmp/x": 3}', '{"/tmp/x": {"target": "y"}}', "{"])
def test_a_broken_record_is_no_trouble(tmp_path: Path, content: str) -> None:
    record = tmp_path / "links.json"
    record.write_text(content)
    SystemLinks(record).clear_leftovers()
    assert not record.exists()
