"""Numbers and times of any size in every field: a command prints what it can, or one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import cycle, product
from pathlib import Path

import pytest
from hostile_answers import MARK, HostileServer, Values, harmful
from pydantic import BaseModel, ValidationError
from raw_terminal import DrawnTerminal
from test_hostile_server import AS_READ, WAYS, arrived, configure, lines, named

from api_client import models
from tui.cli import main

LARGE_LIMIT = Values(MARK, number=10_000, time="2199-12-31T23:59:59.999999Z")
EXTREME = (
    Values(MARK, number=2**63 - 1),
    Values(MARK, number=-(2**63) + 1),
    Values(MARK, number=0, time="1970-01-01T00:00:00Z"),
)
OUT_OF_RANGE = (
    Values(MARK, number=10**400),
    Values(MARK, number=1.7e308, time="0001-01-01T00:00:00+23:59"),
    Values(MARK, time="9999-12-31T23:59:59-23:59"),
    Values(MARK, time="9999-12-31T23:59:59.999999Z"),
)


def numbers_and_times(value: object) -> Iterator[float | datetime]:
    """Yield what is inside of dumped data."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_and_times(item)
    elif isinstance(value, int | float | datetime):
        yield value


@pytest.mark.parametrize("model", [kind for kind in vars(models).values() if hasattr(kind, "model_fields")])
def test_model_holds_no_number_or_time_out_of_range(model: type[BaseModel]) -> None:
    for values in OUT_OF_RANGE:
        with suppress(ValidationError):
            read = model.model_validate_json(json.dumps(harmful(model, values=values)))
            for value in numbers_and_times(read.model_dump()):
                if isinstance(value, datetime):
                    assert 1970 <= value.year < 2200
                else:
                    assert abs(value) <= 2**63


@pytest.mark.parametrize("time", [None, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000+00:00"])
def test_unset_time_is_none_where_a_time_is_optional(time: str | None) -> None:
    job = harmful(models.TrainingJob) | {"created_at": time}
    assert models.TrainingJob.model_validate(job).created_at is None
    with pytest.raises(ValidationError):
        models.JobMetrics.model_validate({"cpu_usage": [{"timestamp": time, "value": 1}]})


def name_of(values: Values) -> str:
    return (
        f"{values.number:.3g}"
        if isinstance(values.number, float)
        else f"{str(values.number)[:6]} {values.time[:12]}"
    )


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[HostileServer]:
    with HostileServer(request.param) as running:
        yield running


def cases() -> Iterator[tuple[Values, tuple[str, ...]]]:
    """All lines with large values, one format with extreme ones, and with one that no model lets in."""
    in_default_format = {line[:-2]: line for line in reversed([*lines()])}.values()
    yield from product([LARGE_LIMIT], lines())
    yield from product(EXTREME, in_default_format)
    yield from zip(cycle(OUT_OF_RANGE), in_default_format, strict=False)


@pytest.mark.parametrize(
    ("server", "line"),
    [pytest.param(*case, id=f"{name_of(case[0])} {named(case[1])}") for case in cases()],
    indirect=["server"],
)
def test_no_number_or_time_ends_a_command(
    line: tuple[str, ...],
    server: HostileServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(server, monkeypatch, tmp_path)
    code = main([word.replace(AS_READ, MARK) for word in line])
    printed = capsys.readouterr()
    assert code == 0 or printed.out + printed.err  # a log may have no lines in the last hour
    assert "Traceback" not in printed.err
    assert "unexpected" not in printed.err.replace("unexpected data", "")


@pytest.mark.parametrize("values", [LARGE_LIMIT, *EXTREME[1:]], ids=name_of)
def test_no_number_or_time_ends_the_dashboard(values: Values, tmp_path: Path) -> None:
    with HostileServer(values) as server:
        environ = {**os.environ, **server.environ(), "TERM": "xterm-256color", "HOME": str(tmp_path)}
        with DrawnTerminal(environ=environ) as terminal:
            terminal.read_until_drawn(lambda picture: MARK in picture)
            for keys, comes, goes in WAYS:
                terminal.types(keys.encode())
                terminal.read_until_drawn(partial(arrived, comes, goes))
            terminal.types(b"q")
            assert terminal.end() == 0
        assert "nexpected error" not in terminal.text
