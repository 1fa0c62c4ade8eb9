"""Streams: colours for terminals only, everything sanitized, closed pipes noticed."""

import io
import json
from typing import Any

import pytest

from api_client.models import TrainingJob
from tui.commands.support.output import CommandOutput, OutputClosed, ascii_json


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_where_they_are_wanted() -> None:
    for stream, environ, coloured in (
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ):
        output = CommandOutput(stream, io.StringIO(), environ)
        assert output.paint("word", "bad") == ("\x1b[31mword\x1b[0m" if coloured else "word")
        assert output.paint("word", "sparkling") == "word"
        assert (output.width_cells is None) == (not stream.isatty())


def test_remarks_are_one_inert_line_and_a_closed_stderr_is_no_error_but_a_closed_stdout_is() -> None:
    stderr = io.StringIO()
    output = CommandOutput(io.StringIO(), stderr, {})
    output.print_message("server says \x1b[31m\nno")
    assert stderr.getvalue().count("\n") == 1
    assert "\x1b" not in stderr.getvalue()
    stderr.close()
    output.print_message("nobody hears this")

    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with pytest.raises(OutputClosed):
        CommandOutput(Closed(), io.StringIO(), {}).write_text("text")


HOSTILE = "\x1b]0;title\x07\x1b[2J\x1b[5m\x9b31m\u202e\u200b\U000e0041\x00\r\tx"


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_data_holds_nothing_that_a_terminal_obeys_but_our_own_colours(stream: Any) -> None:
    output = CommandOutput(stream, io.StringIO(), {"TERM": "xterm"})
    output.write_text(f"{output.paint(HOSTILE, 'bad')} {HOSTILE}\nsecond\n")
    shown = stream.getvalue().replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert [letter for letter in shown if not letter.isprintable()] == ["\n", "\n"]
    assert ("\x1b[31m" in stream.getvalue()) == output.has_color


def test_verbatim_data_is_as_it_is_in_a_pipe_and_sanitized_at_a_terminal() -> None:
    pipe, terminal = io.StringIO(), Terminal()
    CommandOutput(pipe, io.StringIO(), {}).verbatim().write_text(HOSTILE)
    CommandOutput(terminal, io.StringIO(), {}).verbatim().write_text(HOSTILE)
    CommandOutput(terminal, io.StringIO(), {"TERM": "xterm"}).verbatim().write_text("\x1b[31mred\nplain\n")
    assert pipe.getvalue() == HOSTILE
    assert "\x1b]" not in terminal.getvalue()
    assert terminal.getvalue().endswith("red\x1b[0m\nplain\n"), "a line's color ends with it"


def test_json_has_null_for_numbers_that_it_does_not_know() -> None:
    out = io.StringIO()
    CommandOutput(stdout=out).print_json({"loss": [float("nan"), 1.5, float("-inf")], "half": "\ud83d"})
    CommandOutput(stdout=out).print_json(float("inf"))
    assert "[null,1.5,null]" in "".join(out.getvalue().split())
    assert out.getvalue().endswith("\nnull\n")


@pytest.mark.parametrize(
    "text", ["plain", 'é "quoted" \\ \u2028 😀', "\x7f\x9b\x1b[2J\x00", "half \ud83d of a pair"]
)
def test_answers_are_written_as_any_other_json(text: str) -> None:
    later = {"a": [], "b": {}, "c": [1e22, 0.1, None]}
    fields = {"id": text, "current_status": "X", "created_at": "2025-03-01T12:00:00.5Z", "later": later}
    jobs = [TrainingJob.model_validate(fields)]
    ours = io.StringIO()
    CommandOutput(stdout=ours).print_json(jobs)
    plain = json.dumps([job.model_dump(mode="json") for job in jobs], indent=2)
    assert ours.getvalue() == plain.replace("\x7f", "\\u007f") + "\n"
    assert ours.getvalue().isascii()
    assert ascii_json({"é": text}).isascii()
