"""The dashboard app, which owns the session, shows screens, and carries out the requests of screens.

``shell`` is the app itself, which owns the services in the other modules: saved files, alerts, navigation,
tips, remotes, teams, changes of jobs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from api_client.remotes import Remote
from tui.app.shell import CRASH_EXIT_STATUS, BtTuiApp
from tui.app.terminal import crash_notice, drawing_on_stdout, reporting_thread_errors
from tui.settings.model import Loaded
from tui.settings.remembered import Memory, memory_path
from tui.system.garbage import cache_styles_without_widgets, collect_only_when_idle, disable_line_caches

if TYPE_CHECKING:
    from tui.readers.recorded_runs import OpenRecordings
    from tui.screens.welcome import WelcomeChoice

__all__ = ["BtTuiApp", "run_dashboard"]


def run_dashboard(
    remote: Remote | None,
    *,
    job_id: str | None = None,
    tab: str | None = None,
    demo: bool = False,
    settings: Loaded,
    start_emulator: Callable[[], Remote] | None = None,
    recordings: OpenRecordings | None = None,
    why_no_remote: str = "",
) -> WelcomeChoice | None:
    """Run the dashboard until the user quits; return the choice made on the welcome screen, if any.

    ``start_emulator`` is called when the user switches to the local emulator. ``recordings`` are the
    recordings that ``remote`` serves. A demo or recording saves no state for the next start.
    """
    collect_only_when_idle()
    disable_line_caches()
    cache_styles_without_widgets()
    app = BtTuiApp(
        remote,
        job_id=job_id,
        tab=tab,
        demo=demo,
        settings=settings,
        memory=Memory(None if demo or recordings is not None else memory_path()),
        start_emulator=start_emulator,
        recordings=recordings,
        why_no_remote=why_no_remote,
        tips=True,
    )
    choice: WelcomeChoice | None = None
    failure: BaseException | None = None
    try:
        with drawing_on_stdout(), reporting_thread_errors(app.crash):
            choice = app.run()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - raised while the app closed; its message may hold data
        failure = error
    finally:
        app.restore_terminal()  # a second signal may have interrupted Textual while it restored the terminal
        # Remove the folder only now: before, threads of running downloads would create it again.
        app.outbox.close()
    if failure is None and app.ended_without_request:
        # the app's main task was canceled; Textual suppresses this error
        failure = asyncio.CancelledError()
    if failure is not None and not app.return_code:
        sys.stderr.write(f"{crash_notice(failure)}\n")
        raise SystemExit(CRASH_EXIT_STATUS)
    if app.return_code:  # the app has printed a crash report, or its terminal is gone
        raise SystemExit(app.return_code)
    app.shutdown.finish()
    return choice
