"""The collector's pauses: what has survived is not looked through again, and yet not kept for ever."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from tui.system.process import _set_survivors_aside, keep_pauses_short, look_through_everything


class Knot:
    """Something that only a collection can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.callbacks.remove(_set_survivors_aside)
    gc.unfreeze()


def test_what_survives_a_full_collection_is_set_aside() -> None:
    keep_pauses_short()
    kept = [Knot() for _ in range(1000)]
    before = gc.get_freeze_count()
    gc.collect()
    assert gc.get_freeze_count() >= before + len(kept)


def test_what_was_set_aside_is_freed_once_everything_is_looked_through() -> None:
    keep_pauses_short()
    knot = Knot()
    gc.collect()
    held = weakref.ref(knot)
    del knot
    gc.collect()
    assert held() is not None
    look_through_everything()
    gc.collect()
    assert held() is None
