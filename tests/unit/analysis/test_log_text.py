"""What a line is: a bar, a banner that ranks repeat, an object, and how grave."""

import json

import pytest
from hypothesis import given, strategies as st

from tui.analysis.logs.levels import RANKS, detected_level, level_of, level_rank
from tui.analysis.logs.repeats import banner_keys, progress_bar
from tui.analysis.logs.structured import pretty_rows

BARS = [
    ("Training:  46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it, loss=0.913]", "Training|9000", 46),
    ("46/938 ━━━━━━━━━━━━━━━━━━━━ 3s 4ms/step - accuracy: 0.1 - loss: 0.2", "|938", 46),
    ("   ━━━━━━━━╸━━━━ 12.3/45.6 MB 10 MB/s eta 0:00:01", "|45.6 MB", 12.3),
    ("model.safetensors:  46%|████▌     | 2.1G/4.9G [00:10<00:12]", "model.safetensors|4.9G", 46),
    ("foo 45%[======>     ] 1.2M 3MB/s", "foo|", 45),
    ("Epoch 0/2 ━━━━━━╸━━━ 12/40 0:00:01 • 0:00:02 12.3it/s", "Epoch|40", 12),
    ("[rank1]: \x1b[32mload\x1b[0m:   3%|▎   | 3/90 [00:01<00:12]", "[rank1]: load|90", 3),
    ("\r  1%|  | 1/9\r 22%|  | 2/9", "|9", 22),
]


NO_BARS = ["━━━━━━━━━━━", "| a | b |", "100% done", "[======]", "loss 0.3", "", "a %| b", "┏━━━━┓"]


def test_a_bar_is_known_by_what_stays_and_rulers_and_ordinary_lines_are_none() -> None:
    assert [progress_bar(text) for text, _, _ in BARS] == [(key, done) for _, key, done in BARS]
    assert [text for text in NO_BARS if progress_bar(text) is not None] == []


@given(st.text(st.sampled_from("1/%|━[=] .G\r\x1bm")))
def test_no_text_breaks_a_bar(text: str) -> None:
    state = progress_bar(text * 200)
    assert state is None or state.done >= 0


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("[rank3]: NCCL version 2.21", "[rank0]: NCCL version 2.21", True),
        ("2026-11-21 12:00:00,123 - x - rank=3 ready", "2026-11-21 12:00:01,456 - x - rank=12 ready", True),
        ("using cuda:3 on local_rank 3", "using cuda:7 on local_rank 7", True),
        ("I1121 12:00:00.123 worker 1 is up", "I1121 12:00:09.123 worker 2 is up", True),
        ("(Worker pid=12) loaded", "(Worker pid=345) loaded", True),
        ("rank 3 loss: 0.33", "rank 3 loss: 0.34", False),
        ("step 3 of 9 done", "step 4 of 9 done", False),
    ],
)
def test_ranks_that_say_the_same_share_a_key(first: str, second: str, is_same: bool) -> None:
    one, other = banner_keys((first, second))
    assert (one == other) is is_same
    assert one and banner_keys(("", "   ", "=====")) == ["", "", ""], "not worth folding"


def test_objects_are_spread_after_the_words_before_them_nan_included() -> None:
    assert pretty_rows('12:00 INFO {"a": {"b": [1, "é"]}}') == [
        *("12:00 INFO", "{", '  "a": {', '    "b": [', "      1,", '      "é"', "    ]", "  }", "}")
    ]
    rows = pretty_rows("{'loss': nan, 'lr': 1e-05, 'ok': True}") or []
    assert json.loads("".join(rows)) == {"loss": "nan", "lr": 1e-05, "ok": True}


NO_OBJECTS = ["", "loss 0.3", "{", "{}", "f(x) {y}", "[1] done", "{'a': open('x')}", "{" * 100_000 + "}"]


def test_what_is_no_object_stays_as_it_is() -> None:
    assert [text for text in NO_OBJECTS if pretty_rows(text) is not None] == []


def test_a_large_object_is_cut_and_a_deep_or_hostile_one_is_harmless() -> None:
    rows = pretty_rows(json.dumps(list(range(10_000)))) or []
    assert (len(rows), rows[-1]) == (2001, "… 8,002 more rows")
    assert pretty_rows("[" * 5000 + "]" * 5000) is None
    hostile = "".join(pretty_rows(json.dumps({"a": "\x1b[2J\u202e"})) or ["\x1b"])
    assert "\x1b" not in hostile and "\u202e" not in hostile


TOLD = """ERROR|ERROR 11-21 12:00:00 [core.py:1] boom
ERROR|2026-11-21 12:00:00,123 - trainer - ERROR - boom
WARNING|[2026-11-21 12:00:00,123] [WARNING] [launch.py:1] x
INFO|[INFO|trainer.py:2128] 2026-11-21 >> running
ERROR|E0000 00:00:1732187000.123 12 cuda_dnn.cc:8310] Unable to register cuDNN factory
ERROR|[rank3]:E1121 12:00:00.123000 140 torch/distributed] Watchdog
ERROR|[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout
ERROR|[rank1]:[E1121 12:00:00.123 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog
ERROR|[rank0]: Traceback (most recent call last):
ERROR|  + Exception Group Traceback (most recent call last):
ERROR|torch.cuda.OutOfMemoryError: CUDA out of memory.
ERROR|KeyboardInterrupt
ERROR|error: foo.c not found
CRITICAL|fatal: not a git repository
CRITICAL|Fatal Python error: Segmentation fault
ERROR|terminate called after throwing an instance of 'c10::Error'
ERROR|Segmentation fault (core dumped)
WARNING|node-0:123:456 [0] NCCL WARN Call to connect
ERROR|2026-11-21 12:00:00.000 | ERROR    | mod:func:12 - msg
INFO|INFO:root:hello
ERROR|{"ts": 1, "level": "error", "msg": "x"}
ERROR|time=2026 level=error msg=x
WARNING|/usr/lib/x.py:12: UserWarning: something
INFO|(EngineCore_0 pid=123) INFO 11-21 12:00:00 [x.py:1] y
DEBUG|12:00:00 DEBUG x
|computing ERROR bars for the plot
|Error rate: 0.2
|{'loss': 0.9132, 'grad_norm': 0.71, 'error': 0.2, 'learning_rate': 1e-5}
|the level of water is high
|step 5 CRITICAL section entered
|INFORMATION about x
|the traceback is here: Traceback (most recent call last) was found
|loss=0.3 ValueError: nope in the middle
|    raise ValueError("x")
|E1234 is a part number
|Training:  46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it, loss=0.913]""".splitlines()


def test_a_line_tells_its_level_where_loggers_write_it_and_other_words_are_none() -> None:
    found = [f"{detected_level(message)}|{message}" for _, _, message in (one.partition("|") for one in TOLD)]
    assert found == TOLD


def test_the_server_s_level_is_believed_if_it_is_one():
    assert level_of("Traceback (most recent call last):", "INFO") == "INFO"
    assert level_of("fine", "error") == "ERROR"
    assert level_of("ERROR: boom", "from-the-future") == "ERROR"
    assert level_of("step 3\nTraceback (most recent call last):\n  File", None) == "ERROR"
    assert level_rank("step 3") == RANKS["INFO"] < level_rank("WARNING: x") < level_rank("ERROR: x")


@given(st.text(max_size=300), st.sampled_from(["[a]", "- ", "1:", "(x)", "ERROR", "E1121 ", "\x1b[31m", "|"]))
def test_any_text_has_some_level_or_none(text, part):
    assert detected_level(text) in RANKS
    assert detected_level(part * 40_000 + text) in RANKS
