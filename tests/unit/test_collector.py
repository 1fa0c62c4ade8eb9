"""The collector's pauses: what has survived is not looked through again, and yet not kept for ever."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from tui.system.process import _freeze_on_full_collection, freeze_survivors, unfreeze_survivors


class Knot:
    """Something that only a collection can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.callbacks.remove(_freeze_on_full_collection)
    gc.unfreeze()


def test_what_survives_a_full_collection_is_set_aside() -> None:
    freeze_survivors()
    kept = [Knot() for _ in range(1000)]
    before = gc.get_freeze_count()
    gc.collect()
    assert gc.get_freeze_count() >= before + len(kept)


def test_what_was_set_aside_is_freed_once_everything_is_looked_through() -> None:
    freeze_survivors()
    knot = Knot()
    gc.collect()
    held = weakref.ref(knot)
    del knot
    gc.collect()
    assert held() is not None
    unfreeze_survivors()
    gc.collect()
    assert held() is None
