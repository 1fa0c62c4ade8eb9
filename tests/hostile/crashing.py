"""The dashboard with a fault in it: an error whose words and whose variables are the worst there can be."""

import os

from hostile_answers import HARM

from api_client.remotes import resolve_remote
from tui.app import BtTuiApp, run_dashboard
from tui.settings.loading import Loaded
from tui.settings.model import Configuration


def break_down(_app: BtTuiApp) -> None:
    key = os.environ["BASETEN_API_KEY"]
    words = f"{HARM} {key}"
    raise RuntimeError(words)


if __name__ == "__main__":
    BtTuiApp.on_ready = break_down  # type: ignore[attr-defined]
    run_dashboard(resolve_remote(environ=os.environ), settings=Loaded(Configuration(), {}))
