"""Pages in a browser beside the terminal, and text in tmux's buffer."""

import webbrowser
from pathlib import Path

import pytest

from tui.system.external_programs import copy_through_tmux, open_in_browser

LINK = "https://app.example/training/p/logs/j"


class Beside(webbrowser.BackgroundBrowser):
    """A browser that opens a window of its own."""

    opened: str = ""

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        self.opened = url
        return True


def test_a_browser_beside_the_terminal_shows_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Beside("firefox")
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    assert open_in_browser(LINK)
    assert browser.opened == LINK


def test_one_that_draws_in_this_terminal_is_opened_only_if_somebody_named_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("true"))
    monkeypatch.delenv("BROWSER", raising=False)
    assert not open_in_browser(LINK)
    monkeypatch.setenv("BROWSER", "true")
    assert open_in_browser(LINK)


@pytest.fixture
def tmux(tmp_path: Path) -> Path:
    """A program of that name which keeps what it is given."""
    program = tmp_path / "tmux"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" > {tmp_path}/asked\n/bin/cat > {tmp_path}/given\n')
    program.chmod(0o755)
    return tmp_path


@pytest.mark.proves("docs/logs.md", "The log viewer")
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
