"""Shell completion of what the server has: queried with a timeout, else from the cache.

Slow to import: only a tab press on a parameter that takes such words does. ``catalogue`` completes the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

from api_client import Remote, RetryPolicy, TrainingClient, resolve_remote
from api_client.models import TrainingJob
from api_client.remotes.trussrc import read_sections, trussrc_path
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.metrics import curves_of
from tui.analysis.series import latest
from tui.commands.support.options import (
    JOBS,
    METRICS,
    PROJECTS,
    REMOTES,
    CommandSettings,
    job_named,
)
from tui.commands.support.remotes import LOCAL_REMOTE, remote_name, running_local_remote
from tui.settings.remembered import State, change_state, read_state, state_path
from tui.text.sanitize import clip, sanitize
from tui.text.units import number

_HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@+-]*\Z")


@dataclass(frozen=True)
class CachedWords(State):
    """The server's last answer; ``job_id`` is set for the checkpoints and the metrics of a job."""

    asked_s: float = 0.0
    job_id: str | None = None
    words: list[tuple[str, str]] = field(default_factory=list)


Words = Sequence[Sequence[str]]
"""Pairs of a word and its description."""


def fetch_completions(kind: str, settings: CommandSettings, job_id: str | None, typed: str) -> Words:
    """Return the words of one kind at the chosen remote; ``job_id`` selects whose checkpoints or metrics.

    Jobs and projects are offered by name, those that share one by id; if a beginning was ``typed``, by both.

    Words that a shell would run, such as ``$(…)``, are left out.

    Takes at most two seconds, then falls back to the server's last answer. Does not start an emulator or
    renew a login. Raises any error that occurs.
    """
    if kind == REMOTES:
        remotes = dict.fromkeys(read_sections(trussrc_path(os.environ)), "of ~/.trussrc")
        pairs: Words = list(({LOCAL_REMOTE: "an emulator on this machine"} | remotes).items())
    elif kind in (JOBS, PROJECTS) or job_id is not None:
        pairs = _remembered_or_asked(settings, kind, None if kind in (JOBS, PROJECTS) else job_id)
    else:
        pairs = []
    if kind in (JOBS, PROJECTS):
        names = Counter(name for _, name in pairs)
        by_name = {own_id: name for own_id, name in pairs if names[name] == 1 and _HARMLESS.match(name)}
        # An id completes once it is begun; a list shows the names, which are what people know.
        pairs = [
            *((name, own_id) for own_id, name in by_name.items()),
            *((own_id, name) for own_id, name in pairs if typed or own_id not in by_name),
        ]
    return [(word, about) for word, about in pairs if _HARMLESS.match(word)]


def _remote(settings: CommandSettings) -> Remote | None:
    """Return the chosen remote without login renewal: a renewal cut off half-way would lose the login."""
    name = remote_name(settings.remote_name)
    if name == LOCAL_REMOTE and name not in read_sections(trussrc_path(os.environ)):
        return running_local_remote()
    return replace(resolve_remote(name, environ=os.environ), login=None)


def _remembered_or_asked(settings: CommandSettings, kind: str, job_id: str | None) -> Words:
    """Return cached or fresh words; only ids and names are cached, in a private file for each kind."""
    remote = _remote(settings)
    if remote is None:
        return []
    remote_hash = hashlib.sha256(f"{remote.name} {remote.api_url}".encode()).hexdigest()[:16]
    path = state_path(f"completion-{remote_hash}-{kind}.json")
    cached = read_state(path, CachedWords)
    if cached.job_id != job_id:
        cached = CachedWords()
    now_s = time.time()
    # An answer is reused for a while: users press tab several times.
    if not 0 <= now_s - cached.asked_s < 15.0 and (fresh := _asked(remote, kind, job_id)) is not None:
        pairs = [(word, about) for word, about in fresh if len(word) <= 120]
        answer = cached = CachedWords(asked_s=now_s, job_id=job_id, words=pairs[:300])
        with suppress(OSError):
            change_state(path, CachedWords, lambda _before: answer)
    return cached.words


def _asked(remote: Remote, kind: str, job_id: str | None) -> Words | None:
    """Query the server; None if it does not answer in time or refuses."""
    client = TrainingClient(remote, retry=RetryPolicy(max_attempts=1))
    answers: list[Words] = []

    def ask() -> None:
        with suppress(Exception):  # tab completion has nowhere to report errors
            answers.append(asyncio.run(_ask(client, kind, job_id)))

    # A pending name lookup cannot be canceled, so its thread is left behind.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(2.0)
    return answers[0] if answers else None


async def _ask(client: TrainingClient, kind: str, job_id: str | None) -> Words:
    async with client:
        if kind == JOBS:
            return [(job.id, _about(job.name)) for job in await client.jobs.search()]
        if kind == PROJECTS:
            return [(project.id, _about(project.name)) for project in await client.projects.list()]
        job = await job_named(client, job_id or "")
        if kind == METRICS:
            return await _logged_metrics(client, job)
        return [
            (checkpoint.checkpoint_id, "")
            for checkpoint in await client.checkpoints.list(job.project_id, job.id)
        ]


async def _logged_metrics(client: TrainingClient, job: TrainingJob) -> Words:
    """Return the curves in the newest part of a log that has any."""
    fold = ProgressFold()
    start = job.earliest_time(client.clock.now())
    history = client.logs.history(job.project_id, job.id, start=start, newest_first=True)
    async with aclosing(history) as batches:
        async for batch in batches:
            fold.add(batch.entries)
            if curves := curves_of(fold.snapshot()):
                return [(curve.name, number(latest(curve.series))) for curve in curves]
    return []


def _about(name: str | None) -> str:
    return clip(sanitize(name or ""), 50)
