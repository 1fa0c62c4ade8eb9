import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.analysis.logs.repeats import banner_keys, progress_bar
from tui.analysis.logs.structured import pretty_rows


def banner_key(text: str) -> str:
    return banner_keys((text,))[0]


# Progress bars

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


@pytest.mark.parametrize(("text", "key", "done"), BARS)
def test_a_bar_is_known_by_what_stays(text, key, done):
    assert progress_bar(text) == (key, done)


@pytest.mark.parametrize(
    "text", ["━━━━━━━━━━━", "| a | b |", "100% done", "[===]", "[======]", "loss 0.3", "", "a %| b", "┏━━━━┓"]
)
def test_rulers_and_ordinary_lines_are_no_bars(text):
    assert progress_bar(text) is None


@given(st.text(st.sampled_from("1/%|━[=] .G\r\x1bm")))
def test_no_text_breaks_a_bar(text):
    state = progress_bar(text * 200)
    assert state is None or state.done >= 0


# Banners


def test_ranks_that_say_the_same_share_a_key():
    for first, second in [
        ("[rank3]: NCCL version 2.21", "[rank0]: NCCL version 2.21"),
        ("2026-11-21 12:00:00,123 - x - rank=3 ready", "2026-11-21 12:00:01,456 - x - rank=12 ready"),
        ("using cuda:3 on local_rank 3", "using cuda:7 on local_rank 7"),
        ("I1121 12:00:00.123 worker 1 is up", "I1121 12:00:09.123 worker 2 is up"),
        ("(Worker pid=12) loaded", "(Worker pid=345) loaded"),
    ]:
        assert banner_key(first) == banner_key(second) != ""


def test_other_numbers_tell_lines_apart():
    assert banner_key("rank 3 loss: 0.33") != banner_key("rank 3 loss: 0.34")
    assert banner_key("step 3 of 9 done") != banner_key("step 4 of 9 done")


def test_rulers_and_blanks_are_not_worth_folding():
    assert banner_key("") == banner_key("   ") == banner_key("=====") == ""


# Objects


def test_json_is_spread_after_the_words_before_it():
    assert pretty_rows('12:00 INFO {"a": {"b": [1, "é"]}}') == [
        *("12:00 INFO", "{", '  "a": {', '    "b": [', "      1,", '      "é"', "    ]", "  }", "}")
    ]


def test_a_dict_as_python_prints_it_nan_included():
    rows = pretty_rows("{'loss': nan, 'lr': 1e-05, 'ok': True}")
    assert rows is not None
    assert json.loads("".join(rows)) == {"loss": "nan", "lr": 1e-05, "ok": True}


@pytest.mark.parametrize(
    "text",
    ["", "loss 0.3", "{", "{}", "{'a'", "f(x) {y}", "[1] done", "{'a': open('x')}", "{" * 100_000 + "}"],
)
def test_what_is_no_object_stays_as_it_is(text):
    assert pretty_rows(text) is None


def test_a_large_object_is_cut_and_a_deep_or_hostile_one_is_harmless():
    rows = pretty_rows(json.dumps(list(range(10_000))))
    assert rows is not None
    assert len(rows) == 2001
    assert rows[-1] == "… 8,002 more rows"
    assert pretty_rows("[" * 5000 + "]" * 5000) is None
    hostile = pretty_rows(json.dumps({"a": "\x1b[2J\u202e"}))
    assert hostile is not None
    assert "\x1b" not in "".join(hostile)
    assert "\u202e" not in "".join(hostile)
