"""The dashboard app: it owns the session, shows screens, and carries out their requests.

``shell`` is the app itself, which owns the services in the other modules: downloads, alerts, navigation,
tips, remotes, teams, changes of jobs, saved files.
"""

from tui.app.shell import BtTuiApp, run_dashboard

__all__ = ["BtTuiApp", "run_dashboard"]
