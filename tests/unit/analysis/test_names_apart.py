"""Long names in little room: within it, and told apart wherever that can be."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.analysis.fleet.snapshot import brief
from tui.analysis.run.finding import SHORT_CHARACTERS, FindingKind, HealthFinding
from tui.text.names import abbreviated_names, clip_middle
from tui.text.sanitize import cell_width, sanitize

JOB = "baseten-training-job-lqz4o0q-multinode"
HOSTS = ["ip-10-0-12-131.us-west-2.compute.internal", "ip-10-0-9-131.us-west-2.compute.internal"]


@pytest.mark.parametrize(
    ("names", "cells", "shown"),
    [
        ([f"{JOB}-0", f"{JOB}-11"], 7, ["…node-0", "…ode-11"]),
        (HOSTS, 8, ["…12…", "…9…"]),
        (["alpha-" + "x" * 30, "beta-" + "x" * 30], 8, ["alpha-x…", "beta-xx…"]),
        (["節点" * 12 + "0", "節点" * 12 + "1"], 7, ["…節点0", "…節点1"]),
    ],
)
def test_what_tells_names_apart_is_kept(names, cells, shown):
    assert abbreviated_names(names, cells) == shown


@settings(max_examples=25)
@given(st.lists(st.text("ab-0 節é\u0301…", max_size=40).map(sanitize), max_size=8), st.integers(-1, 45))
def test_never_wider_than_asked(names, cells):
    cut = abbreviated_names(names, cells)
    assert len(cut) == len(names)
    assert all(cell_width(name) <= max(0, cells) for name in cut)
    assert all(cell_width(clip_middle(name, cells)) <= max(0, cells) for name in names)


@pytest.mark.parametrize(("count", "cells"), [(10, 6), (11, 7), (64, 6)])
def test_ranks_are_always_told_apart(count: int, cells: int) -> None:
    names = [f"{JOB}-{rank}" for rank in range(count)]
    assert len(set(abbreviated_names(names, cells))) == count


def test_a_finding_says_what_is_wrong_whatever_its_node_is_called():
    node, what = f"{JOB}-2", "is slow: GPUs at 60 %, the others at 95 %"
    slow = HealthFinding(FindingKind.STRAGGLER, "warning", "", node, short=f"{node} {what}")
    assert len(slow.short) <= SHORT_CHARACTERS
    assert slow.short.startswith("basete…") and slow.short.endswith(f"-2 {what}")
    shown = brief(slow, datetime.now(UTC))
    assert shown.endswith("node-2 slow") and len(shown) < 26
