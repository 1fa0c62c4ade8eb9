"""Open a page in the browser, unless that would take over this terminal."""

from __future__ import annotations

import os
import webbrowser


def open_in_browser(link: str) -> bool:
    """Whether a browser beside the terminal was asked to show the page.

    Over SSH the machine's browser is often lynx or w3m, which would draw over the dashboard. One that the
    person named in ``BROWSER`` is taken as it is.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    draws_here = type(browser) is webbrowser.GenericBrowser  # its subclasses run in the background
    if draws_here and "BROWSER" not in os.environ:
        return False
    return browser.open(link)
