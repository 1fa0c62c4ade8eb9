import webbrowser

import pytest

from tui.system.external_programs import open_in_browser

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


def test_one_that_draws_in_this_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSER", raising=False)
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("true"))
    assert not open_in_browser(LINK)


def test_the_one_that_somebody_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("true"))
    assert open_in_browser(LINK)


def test_no_browser_at_all_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> webbrowser.BaseBrowser:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    assert not open_in_browser(LINK)
