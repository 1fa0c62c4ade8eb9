"""The trail of visited screens."""

from functools import partial

from hypothesis import given, strategies as st

from tui.app.history import NavigationHistory
from tui.screens.cache import CachePage

place = partial(CachePage, name="")


def trail(names: str) -> NavigationHistory:
    made = NavigationHistory()
    for name in names:
        made.visit(place(name))
    return made


def test_back_and_forward_go_through_the_visits() -> None:
    walked = trail("habc")
    assert [walked.step(-1), walked.step(-1), walked.step(1)] == [place("b"), place("a"), place("b")]
    walked.visit(place("d"))  # forgets what was ahead
    assert (walked.step(1), walked.step(-9), walked.current) == (None, None, place("d"))
    assert walked.step(-1) == place("b")
    left = trail("hab")
    left.record_return(place("h"))  # a step back that can be undone
    assert [left.step(1), left.step(1)] == [place("a"), place("b")]


@given(st.lists(st.sampled_from("abcdefgh<>"), max_size=300))
def test_it_is_always_somewhere_and_never_grows_without_end(steps: list[str]) -> None:
    walked = trail("h")
    for step in steps:
        if step in "<>":
            walked.step(-1 if step == "<" else 1)
        else:
            walked.visit(place(step))
            assert walked.current == place(step)
        assert walked.current is not None
    assert len(walked._visits) <= 100
