"""The feed of the screen that explains a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from api_client.http.retry import LASTING, retrying
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.why.explain import explained_findings
from tui.analysis.why.explanation import Explanation
from tui.feeds.throttle import SnapshotFeed
from tui.readers.health_metrics import HealthMetrics
from tui.readers.session import Session
from tui.readers.why import read_evidence


@dataclass(frozen=True, slots=True)
class WhyView:
    """The problems of a run, and an explanation of the selected problem."""

    problems: tuple[HealthFinding | None, ...]
    """The findings, worst first; None stands for the failure of the run itself."""
    index: int = 0
    """Index of the selected problem."""
    explanation: Explanation | None = None
    """None until the evidence has been read."""
    error: str = ""
    at: datetime | None = None
    """The time at which the problems were present; None if the run has ended."""


class WhyFeed(SnapshotFeed[WhyView]):
    """Publishes ``WhyView``s of a run.

    The first is ``view`` if the screen is shown again, else it explains the worst problem. ``latest_run``
    returns the newest snapshot of the run.
    """

    def __init__(
        self,
        session: Session,
        run: RunSnapshot,
        latest_run: Callable[[], RunSnapshot | None],
        view: WhyView | None = None,
        *,
        publish: Callable[[WhyView], object],
    ) -> None:
        super().__init__(session, view or WhyView(explained_findings(run), at=_time_of(run)), publish)
        self._run = run
        self._latest_run = latest_run
        self._is_shown_again = view is not None
        self._explanations: dict[int, Explanation] = {}

    async def run(self) -> None:
        """Explain the selected problem until cancelled; retry while the server does not respond."""
        self._change()  # publish the initial view at once
        if self._is_shown_again:
            self.refresh()
        while True:
            await retrying(
                self._explain,
                LASTING,
                sleep=self._pause,
                on_wait=lambda error, _delay_s: self._change(error=str(error)),
            )
            await self._pause(None)

    def refresh(self) -> None:
        """Explain the current problems; if the run has none anymore, explain the previous problems again."""
        run, view = self._latest_run(), self.snapshot
        problems = explained_findings(run) if run is not None else ()
        if run is not None and problems:
            selected_key = _problem_key(view.problems[view.index])
            keys = [_problem_key(problem) for problem in problems]
            index = keys.index(selected_key) if selected_key in keys else 0
            explanation = view.explanation if keys[index] == selected_key else None
            self._run = run
            self._change(problems=problems, index=index, explanation=explanation, at=_time_of(run))
        self._explanations = {}
        super().refresh()

    def show_next(self) -> None:
        index = (self.snapshot.index + 1) % len(self.snapshot.problems)
        self._change(index=index, explanation=self._explanations.get(index), error="")
        self._pause.end()

    async def _explain(self) -> None:
        index, explanations = self.snapshot.index, self._explanations
        if index in explanations:
            return
        client = self._session.client
        if self._run.health_metrics is None:
            metrics = await HealthMetrics(client, self._run.job).poll(self._session.clock.now())
            self._run = replace(self._run, health_metrics=metrics)
        evidence = await read_evidence(client, self._run, self.snapshot.problems[index])
        # repeat the explanation until checkpoints, cost and onset are known
        for _ in range(10):
            latest_run = self._latest_run() or self._run
            run = replace(latest_run, health_metrics=latest_run.health_metrics or self._run.health_metrics)
            explanations[index] = await evidence.explain(run)
            if index != self.snapshot.index or explanations is not self._explanations:
                return
            self._change(explanation=explanations[index], error="")
            finding = explanations[index].finding
            is_dated = finding is None or finding.since is not None
            if run.history_known and run.checkpoints is not None and is_dated:
                return
            await self._pause(1.0)  # the cost of a job that was just opened is still being read


def _time_of(run: RunSnapshot) -> datetime | None:
    return None if run.job.is_finished else run.server_now


def _problem_key(problem: HealthFinding | None) -> str:
    return problem.key if problem is not None else ""
