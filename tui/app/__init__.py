"""The dashboard app: it owns the session, shows screens, and carries out their requests.

``shell`` is the app itself; the other modules are its parts: downloads, alerts, comparisons, batch
actions, files for a browser, remotes.
"""

from tui.app.shell import BtTuiApp, run_dashboard

__all__ = ["BtTuiApp", "run_dashboard"]
