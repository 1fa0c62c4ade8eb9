"""The dashboard with a fault in it: an error whose words and whose variables are the worst there can be."""

import os
import sys

from hostile_answers import HARM

from api_client.remotes import resolve_remote
from tui.app import BtTuiApp


class Crashing(BtTuiApp):
    """Breaks when it is shown."""

    def on_ready(self) -> None:
        key = os.environ["BASETEN_API_KEY"]
        words = f"{HARM} {key}"
        raise RuntimeError(words)


if __name__ == "__main__":
    app = Crashing(resolve_remote(environ=os.environ))
    app.run()
    sys.exit(app.return_code or 0)
