"""The shell of the dashboard: it owns the session, shows screens, and does what they ask for.

``shell`` is the app itself; the other modules are what it keeps: downloads, alerts, comparisons, jobs done
something to together, files for a browser, the remote.
"""

from tui.app.shell import BtTuiApp, run_dashboard

__all__ = ["BtTuiApp", "run_dashboard"]
