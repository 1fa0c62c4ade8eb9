from pathlib import Path

import pytest

from tui.system.external_programs import copy_through_tmux


@pytest.fixture
def tmux(tmp_path: Path) -> Path:
    """A program of that name which keeps what it is given."""
    program = tmp_path / "tmux"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" > {tmp_path}/asked\n/bin/cat > {tmp_path}/given\n')
    program.chmod(0o755)
    return tmp_path


def test_inside_tmux_the_text_goes_to_its_buffer_and_to_the_terminal(tmux: Path) -> None:
    assert copy_through_tmux("loss 0.9\n\ud800ä", {"TMUX": "/tmp/tmux,1,0", "PATH": str(tmux)})
    assert (tmux / "asked").read_text() == "load-buffer -w -\n"
    assert (tmux / "given").read_text("utf-8") == "loss 0.9\n?ä"


def test_outside_of_tmux_without_it_or_where_it_refuses_nothing_is_done(tmux: Path, tmp_path: Path) -> None:
    assert not copy_through_tmux("x", {"PATH": str(tmux)})
    assert not copy_through_tmux("x", {"TMUX": "1", "PATH": str(tmp_path / "nowhere")})
    assert not (tmux / "asked").exists()
    (tmux / "tmux").write_text("#!/bin/sh\nexit 1\n")
    assert not copy_through_tmux("x", {"TMUX": "1", "PATH": str(tmux)})
