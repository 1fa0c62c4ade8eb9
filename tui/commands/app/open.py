"""``bt-tui open``: the dashboard on a recording."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from tui.commands.support.options import CommandSettings, examples
from tui.commands.support.recorded import served_recording
from tui.commands.support.run_options import parse_moment
from tui.commands.support.session import dashboard_settings
from tui.commands.support.terminal import need_terminal, opening_notice
from tui.settings.loading import Loaded
from tui.settings.model import NotificationSettings


@examples(
    "bt-tui open run.btrun",
    "bt-tui open run.btrun --at 1h20m           80 minutes after the job was created",
    "bt-tui open run.btrun --at 12:30 --speed 60",
)
@click.command("open")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--at", "typed_at", metavar="TIME", help="Moment to show: 12:30, 1h20m after the start, ISO 8601 …"
)
@click.option(
    "--speed", metavar="X", type=click.FloatRange(min=0, min_open=True), help="Play it X times as fast."
)
@click.pass_obj
def open_file(settings: CommandSettings, path: Path, typed_at: str | None, speed: float | None) -> None:
    """Open the dashboard on a recording (bt-tui record), without an account. Nothing can be changed.

    It shows the last moment, or the one given by --at. With --speed it plays from there, or from the
    beginning, to the end.
    """
    need_terminal()
    with Recording(path) as recording, opening_notice():
        clock = _playback(recording, typed_at, speed)
        for problem in recording.problems:
            settings.output.remark(f"a part of {path} can't be read: {problem}")
        loaded = settings_of(settings, path)
        from tui.app import run_dashboard

        with served_recording(recording, clock) as remote:
            run_dashboard(remote, job_id=recording.job.id, settings=loaded, playback=clock)


def _playback(recording: Recording, typed_at: str | None, speed: float | None) -> Playback:
    at: datetime | None = recording.begin if speed is not None else None
    if typed_at is not None:
        try:
            at = parse_moment(typed_at, recording.begin, recording.until)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--at") from None
    clock = Playback(recording.begin, recording.until, at=at, speed=speed or 1.0)
    if speed is not None:
        clock.play()
    return clock


def settings_of(settings: CommandSettings, path: Path) -> Loaded:
    """Return the user's settings, read-only, and without notifications outside of the dashboard."""
    loaded = dashboard_settings(settings)
    quiet = NotificationSettings(toast=False, bell=False, title=False, osc="off", job_end=False)
    changes = {"readonly": True, "notifications": quiet}
    return replace(
        loaded,
        configuration=loaded.configuration.model_copy(update=changes),
        origins={**loaded.origins, "readonly": f"recording {path.name}"},
    )
