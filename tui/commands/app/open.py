"""``bt-tui open``: Open the dashboard on a recording."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from api_client.replay import Replay
from tui.commands.support.options import CommandSettings, examples, parse_moment
from tui.commands.support.remotes import dashboard_settings
from tui.commands.support.session import report_recording_problems
from tui.commands.support.terminal import need_terminal, opening_notice
from tui.settings.model import Loaded, NotificationSettings


@examples(
    "bt-tui open run.btrun",
    "bt-tui open run.btrun --at 1h20m           80 minutes after the job was created",
    "bt-tui open run.btrun --at 12:30 --speed 60",
    "bt-tui open monday.btrun tuesday.btrun     both on Home, where c compares them",
)
@click.command("open")
@click.argument("paths", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--at", "start_text", metavar="TIME", help="Moment to show: 12:30, 1h20m after the start, ISO 8601 …"
)
@click.option(
    "--speed",
    metavar="X",
    type=click.FloatRange(min=0, min_open=True),
    help="Play the recording X times as fast.",
)
@click.pass_obj
def open_file(
    settings: CommandSettings, paths: Sequence[Path], start_text: str | None, speed: float | None
) -> None:
    """Open the dashboard on recordings (bt-tui record), without an account. Nothing can be changed.

    It shows the run at the end of the recording, or at --at TIME. With --speed, it plays from TIME, or from
    the beginning, to the end.
    """
    need_terminal()
    with ExitStack() as open_files, opening_notice():
        recordings = [open_files.enter_context(Recording(path)) for path in paths]
        _refuse_duplicate_jobs(recordings)
        for recording in recordings:
            report_recording_problems(recording, settings.output)
        clock = _playback(recordings, start_text, speed)
        loaded = recording_settings(settings, paths)
        job_id = recordings[0].job.id if len(recordings) == 1 else None
        replay = Replay(recordings, clock)
        from tui.app import run_dashboard
        from tui.readers.recorded_runs import OpenRecordings

        with OpenRecordings(recordings, replay) as opened:
            run_dashboard(replay.remote, job_id=job_id, settings=loaded, recordings=opened)


def _refuse_duplicate_jobs(recordings: Sequence[Recording]) -> None:
    path_of_job: dict[str, Path] = {}
    for recording in recordings:
        if recording.job.id in path_of_job:
            both_paths = f"{path_of_job[recording.job.id]} and {recording.path}"
            raise click.UsageError(f"{both_paths} are recordings of the same job; open one of them")
        path_of_job[recording.job.id] = recording.path


def _playback(recordings: Sequence[Recording], start_text: str | None, speed: float | None) -> Playback:
    begin = min(recording.begin for recording in recordings)
    until = max(recording.until for recording in recordings)
    start = begin if speed is not None else None
    if start_text is not None:
        try:
            start = parse_moment(start_text, begin, until)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--at") from None
    clock = Playback(begin, until, at=start, speed=speed or 1.0)
    if speed is not None:
        clock.play()
    return clock


def recording_settings(settings: CommandSettings, paths: Sequence[Path]) -> Loaded:
    """Return the user's settings, but read-only and with all notifications off."""
    loaded = dashboard_settings(settings)
    names = ", ".join(path.name for path in paths)
    no_notifications = NotificationSettings(toast=False, bell=False, title=False, osc="off", job_end=False)
    return replace(
        loaded,
        configuration=replace(loaded.configuration, readonly=True, notifications=no_notifications),
        origins={**loaded.origins, "readonly": f"recording {names}"},
    )
