from hypothesis import given
from hypothesis import strategies as st

from tui.analysis.logs.levels import RANKS, detected_level, level_of, level_rank

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
