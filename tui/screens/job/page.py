"""The page of a job. Its screen is imported only once Home is shown, so that Home starts faster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from tui.screens.base import Page, PageServices
from tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from api_client.models import TrainingJob
    from tui.screens.job.screen import JobScreen


@dataclass(frozen=True, eq=False)
class JobPage(Page):
    job: TrainingJob

    def open(self, services: PageServices) -> JobScreen:
        from tui.feeds.run import RunFeed
        from tui.screens.job.log_pane import log_options
        from tui.screens.job.screen import JobScreen

        configuration, recordings = services.settings.configuration, services.recordings
        make_feed = partial(
            RunFeed,
            services.session,
            settings=configuration.runs,
            refresh=configuration.refresh,
            findings=services.recent_findings(self.job),
        )
        return JobScreen(
            self.job,
            make_feed,
            log=log_options(services.settings, services.memory.state.job),
            memory=services.memory,
            recorded=recordings.run(self.job.id, configuration.runs) if recordings is not None else None,
        )


async def import_screen() -> None:
    """Import the job screen in a thread, because the import would delay the first job by 0.4 s."""
    await asyncio.to_thread(import_module, "tui.screens.job.screen")


async def job_by_id(job_id: str, tab: str | None, services: PageServices) -> JobPage | None:
    """Return the page of a job; notify if the job is gone. ``tab`` is None for the tab used last."""
    job = await services.session.find_job(job_id)
    if job is None:
        services.app.notify(f"No job {sanitize(job_id)} on {services.session.remote_name}.", severity="error")
        return None
    if tab is not None:
        job_state = replace(services.memory.state.job, tab=tab, job_id=job.id)
        services.memory.put(job=job_state)
    return JobPage(job)
