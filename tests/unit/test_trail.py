"""The trail of visited screens."""

from hypothesis import given
from hypothesis import strategies as st

from tui.app.history import LONGEST, HistoryEntry, NavigationHistory


def place(name: str) -> HistoryEntry:
    return HistoryEntry((name,), lambda: None)


def trail(names: str) -> NavigationHistory:
    made = NavigationHistory()
    for name in names:
        made.visit(place(name))
    return made


def test_back_and_forward_go_through_the_visits() -> None:
    walked = trail("habc")
    assert [walked.step(-1), walked.step(-1), walked.step(1)] == [place("b"), place("a"), place("b")]
    walked.visit(place("d"))  # forgets what was ahead
    assert (walked.step(1), walked.step(-9), walked.present) == (None, None, place("d"))
    assert walked.step(-1) == place("b")


def test_leaving_a_screen_is_a_step_back_that_can_be_undone() -> None:
    walked = trail("hab")
    walked.record_return(place("h"))
    assert walked.step(1) == place("a")
    assert walked.step(1) == place("b")


@given(st.lists(st.sampled_from("abcdefgh<>"), max_size=300))
def test_it_is_always_somewhere_and_never_grows_without_end(steps: list[str]) -> None:
    walked = trail("h")
    for step in steps:
        if step in "<>":
            walked.step(-1 if step == "<" else 1)
        else:
            walked.visit(place(step))
            assert walked.present == place(step)
        assert walked.present is not None
    assert len(walked._visits) <= LONGEST
