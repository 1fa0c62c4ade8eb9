import pytest
from hypothesis import given, strategies as st

from tui.analysis.logs.errors import ErrorLines, TracebackPart, TracebackReader

SIGNS = {TracebackPart.BEGIN: "B", TracebackPart.INSIDE: "i", TracebackPart.END: "E"}
LOGS = {
    "a plain traceback": """. step 1
B Traceback (most recent call last):
i   File "a.py", line 3, in f
i     g()
i     ^^^
E ValueError: no
i   more of the message
. step 2""",
    "a bar that goes on after the exception is none of it": """B Traceback (most recent call last):
i   File "a.py", line 3, in f
E ValueError: no sample 7, the next one is taken
i   more of the message
.  46%|####5     | 4120/9000 [6:10:38<7:17:27,  5.39s/it]
.  47%|####5     | 4121/9000 [6:10:43<7:17:22,  5.39s/it]""",
    "a chain is one": """B Traceback (most recent call last):
i   File "a.py", line 3, in f
E KeyError: 'x'
i
i During handling of the above exception, another exception occurred:
i
i Traceback (most recent call last):
i   File "b.py"
E RuntimeError: worse
. step 2""",
    "two that follow each other are two": """B Traceback (most recent call last):
i   File "a.py", line 3, in f
E KeyError: 'x'
B Traceback (most recent call last):
i   File "b.py"
E queue.Empty
. Epoch: 3""",
    "ranks interleave each in its own lane": """B [rank0]: Traceback (most recent call last):
B [rank1]: Traceback (most recent call last):
i [rank0]:   File "a.py", line 3, in f
i [rank1]:   File "a.py", line 3, in f
E [rank1]: RuntimeError: NCCL
. step 3 goes on
E [rank0]: ValueError: no
. [rank0]: bye""",
    "lines of others in between do not end it": """B Traceback (most recent call last):
i   File "a.py", line 3, in f
. loss 0.3
. Epoch: 3
i     g()
E ValueError: no""",
    "torchrun's summary is no part of it": """B Traceback (most recent call last):
i   File "/bin/torchrun", line 8, in <module>
E torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
. ============================================================
. train.py FAILED
. ------------------------------------------------------------
. Root Cause (first observed failure):
. [0]:
.   exitcode  : 1 (pid: 12)
. ============================================================""",
    "stacks of the native kind": """B terminate called after throwing an instance of 'c10::Error'
i   what():  CUDA error: an illegal memory access was encountered
i Exception raised from c10_cuda_check at CUDAException.cpp:43 (most recent call first):
i frame #0: c10::Error::Error
. step 4
B Fatal Python error: Segmentation fault
i   File "a.py", line 3 in f
. step 5""",
    "an exception group is one": """B   + Exception Group Traceback (most recent call last):
i   |   File "x"
i   | ExceptionGroup: unhandled (2 sub-exceptions)
i   +-+---------------- 1 ----------------
i     | Traceback (most recent call last):
i     |   File "y"
i     | ValueError: 1
i     +------------------------------------
. step 5""",
    "speaking of a traceback is none": """. we saw a Traceback (most recent call last) in the other job
. Traceback (innermost last)
. ============================================================""",
}
"""Each line begins with what it is expected to be: B, i, E or a dot, and one space."""


@pytest.mark.parametrize("text", LOGS.values(), ids=LOGS)
def test_each_line_has_its_part_in_a_traceback(text: str) -> None:
    reader = TracebackReader()
    found = []
    for line in text.splitlines():
        told = reader.read(line[2:])
        found.append(f"{'.' if told is None else SIGNS[told.part]} {line[2:]}".rstrip())
    assert found == text.splitlines()


def test_one_that_never_ends_does_not_swallow_the_log():
    reader = TracebackReader()
    reader.read("Traceback (most recent call last):")
    lines = [*(f"step {number}" for number in range(100)), "  indented but long after"]
    assert [line for line in lines if reader.read(line) is not None] == []


@given(st.lists(st.sampled_from(["Traceback (most recent call last):", "  File", "ValueError: x", "", "step 1", "[rank0]: "])))  # fmt: skip
def test_whatever_comes_a_line_inside_follows_a_beginning(lines):
    reader = TracebackReader()
    begun: set[str] = set()
    for told in filter(None, map(reader.read, lines)):
        if told.part is TracebackPart.BEGIN:
            begun.add(told.lane)
        assert told.lane in begun


def test_errors_are_counted_alike_whichever_page_is_read_first() -> None:
    pages = [range(start, start + 100) for start in range(0, 1000, 100)]
    counts = []
    for order in (pages, pages[::-1]):
        lines = ErrorLines()
        for second in (second for page in order for second in page):
            lines.take(second * 10**9, "ValueError: bad", "ERROR", None)
        counts.append(lines.tally().count)
    forward, backward = counts
    assert forward == 167
    assert forward <= backward <= forward + len(pages)


def test_line_without_a_word_reports_no_error_whatever_its_level() -> None:
    lines = ErrorLines()
    assert not any(lines.take(0, text, "ERROR", None) for text in ("*" * 32, "-----\n=====", " ^~~~"))
    assert lines.take(0, "*****\nboom", "ERROR", None)


@pytest.mark.parametrize(
    ("reported", "named"),
    [
        (
            ["Error executing job with overrides: []", 'File "main.py", line 3', "ValueError: no"],
            "ValueError: no",
        ),
        (["[rank1]: RuntimeError: first", "ValueError: later"], "[rank1]: RuntimeError: first"),
        (
            ["[9.1] NVRM: Xid (PCI:0000:9b:00): 79", "RuntimeError: lost"],
            "[9.1] NVRM: Xid (PCI:0000:9b:00): 79",
        ),
        (["ERROR: pip's dependency resolver does not currently take into account all"], None),
    ],
    ids=[
        "an exception after its headings",
        "the first of two",
        "the driver's report",
        "pip's, of no failure",
    ],
)
def test_error_is_named_by_its_first_exception(reported: list[str], named: str | None) -> None:
    lines = ErrorLines()
    for second, message in enumerate(reported):
        lines.take(second * 10**9, message, "ERROR", None)
    assert [error.text for error in lines.tally().kept] == ([] if named is None else [named])
