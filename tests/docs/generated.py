"""Generate the parts of the documentation that come from the code.

``PYTHONPATH=. python tests/docs/generated.py`` rewrites them; tests compare them with the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

from tui.actions import ACTIONS, SCOPE_TITLES, Scope
from tui.actions.keymap import key_signs
from tui.analysis.progress.lines.custom import GROUPS
from tui.analysis.progress.lines.reader import parse
from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.run.finding import FindingKind
from tui.settings.reference import entries, toml_value

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = REPOSITORY / "docs"

THRESHOLDS: Mapping[str, tuple[str, ...]] = {
    "all": ("off", "release"),
    FindingKind.STALLED: ("stall_",),
    FindingKind.LOSS_EXPLODING: ("loss_", "grad_norm_"),
    FindingKind.GPU_IDLE: ("idle_", "active_"),
    FindingKind.STRAGGLER: ("straggler_",),
    FindingKind.NODE_MISSING: ("missing_",),
    FindingKind.METRICS_MISSING: ("metrics_",),
    FindingKind.GPU_MEMORY: ("gpu_memory_",),
    FindingKind.MEMORY_LEAK: ("leak_",),
    FindingKind.DISK_FILLING: ("disk_",),
    FindingKind.CHECKPOINT_OVERDUE: ("checkpoint_",),
    FindingKind.RESTARTS: ("restarts",),
    FindingKind.ERRORS: ("errors_",),
    FindingKind.QUEUED: ("queued_",),
}
"""Which settings of ``[health]`` belong to which finding, by the beginnings of their names."""

TRAINERS: tuple[tuple[str, str], ...] = (
    (
        "Hugging Face Trainer, TRL, Unsloth, Axolotl",
        "{'loss': 0.9132, 'grad_norm': 0.71, 'learning_rate': 1.9e-05, 'epoch': 1.3}",
    ),
    (
        "LLaMA-Factory, ms-swift",
        "{'loss': 1.83, 'learning_rate': 1e-05, 'global_step/max_steps': '10/100'}",
    ),
    ("their step: tqdm's bar", "Steps:  46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it]"),
    (
        "Lightning, older NeMo",
        "Epoch 0:  10%|█         | 10/100 [00:01<00:09,  9.90it/s, v_num=0, train_loss=2.3]",
    ),
    ("Keras", "1875/1875 - 5s - 3ms/step - accuracy: 0.9155 - loss: 0.2912 - val_loss: 0.1301"),
    (
        "Megatron-LM",
        " iteration     4120/    9000 | consumed samples: 80 | elapsed time per iteration (ms): 1234.5"
        " | learning rate: 1.5E-04 | lm loss: 9.132000E-01 | grad norm: 5.412 |",
    ),
    (
        "NeMo 2",
        "Training epoch 0, iteration 4119/8999 | lr: 1.9e-05 | global_step: 4119 | reduced_train_loss: 0.913",
    ),
    ("torchtitan", "step: 4120  loss:  0.9132  grad_norm:  0.7100  memory: 40.14GiB(50.70%)  tps: 1,234"),
    (
        "verl",
        "step:412 - actor/pg_loss:0.0123 - actor/lr:1e-06 - training/global_step:412 - perf/throughput:812.1",
    ),
    ("DeepSpeed", "steps: 4120 loss: 0.9132 iter time (s): 5.312 samples/sec: 24.1"),
    ("MosaicML Composer", "[epoch=1/3][batch=120/4800]:"),
    ("OLMo", "[step=120/739328,epoch=0]"),
    ("JSON lines, fairseq", '{"step": 40, "loss": 1.2, "lr": 1e-4}'),
    ("your own, as most people print it", "step 40/900 | loss 1.234 | lr 1.9e-5 | 98765 tok/s"),
    ("", "Epoch [1/3], Step [40/900], Loss: 1.2"),
    ("checkpoints", "Saving model checkpoint to /mnt/ckpts/checkpoint-4000"),
)
"""Trainers, each with a line as it prints it."""

_INNER = ("from_bar", "rank", "whole_epochs")  # how a reading was read, rather than what it tells
_EXAMPLE = re.compile(r"<!-- examples/(\w+\.py) -->\n(?:```python\n.*?```\n)?", re.DOTALL)
_KEYS = re.compile(r"<!-- keys -->\n.*?<!-- end -->\n", re.DOTALL)
_MADE = re.compile(
    r"<!-- (thresholds: [\w-]+|trainers|groups) -->\n(?:(?:(?!<!-- ).)*<!-- end -->\n)?", re.DOTALL
)


def library_guide(guide: str) -> str:
    """The guide with every example as its file is now."""

    def shown(match: re.Match[str]) -> str:
        source = (REPOSITORY / "examples" / match[1]).read_text(encoding="utf-8")
        return f"<!-- examples/{match[1]} -->\n```python\n{source}```\n"

    return _EXAMPLE.sub(shown, guide)


def health_page(page: str) -> str:
    """The page with thresholds, trainers and groups as they are now."""

    def made(match: re.Match[str]) -> str:
        subject, _, kind = match[1].partition(": ")
        table = {"thresholds": lambda: thresholds(kind), "trainers": trainers, "groups": groups}[subject]()
        return f"<!-- {match[1]} -->\n{table}<!-- end -->\n"

    return _MADE.sub(made, page)


def keys_page(page: str) -> str:
    """Return the page with the current tables of keys."""
    return _KEYS.sub(lambda _: f"<!-- keys -->\n{keys()}<!-- end -->\n", page)


def keys() -> str:
    """Return a table of keys for every scope."""
    return "\n".join(
        f"## {SCOPE_TITLES[scope]}\n\n| Key | Action |\n|---|---|\n" + _keys_of(scope) for scope in Scope
    )


def _keys_of(scope: Scope) -> str:
    return "".join(
        f"| {' '.join(f'`{sign}`' for sign in key_signs(action.keys).split(' '))} | {action.help} |\n"
        for action in ACTIONS
        if action.scope is scope
    )


def thresholds(kind: str) -> str:
    """The settings of one kind of finding, with their defaults."""
    rows = [
        f"| `{entry.key}` | `{toml_value(entry.default)}` | {entry.text} |\n"
        for entry in entries()
        if entry.section == "health" and entry.key.startswith(THRESHOLDS[kind])
    ]
    return "| Setting | Default | Description |\n|---|---|---|\n" + "".join(rows)


def trainers() -> str:
    """What is read of one line of each trainer, by reading it."""
    rows = [
        f"| {name} | `{line.strip().replace('|', chr(92) + '|')}` | {_read(line)} |\n"
        for name, line in TRAINERS
    ]
    return "| Trainer | A line | What is read |\n|---|---|---|\n" + "".join(rows)


def groups() -> str:
    """The names that a pattern may use."""
    return "Groups that count: " + ", ".join(f"`{name}`" for name in GROUPS) + ".\n"


def _read(line: str) -> str:
    reading = parse(line)
    assert reading is not None, line
    told = {field.name: getattr(reading, field.name) for field in fields(ParsedMetrics)}
    shown = {name: value for name, value in told.items() if value is not None and name not in _INNER}
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in shown.items()
    )


PAGES: Mapping[str, Callable[[str], str]] = {
    "library.md": library_guide,
    "health.md": health_page,
    "keys.md": keys_page,
}
"""Pages with generated parts, each with the function that regenerates it."""


def main() -> None:
    """Rewrite all pages."""
    for name, make in PAGES.items():
        path = DOCUMENTS / name
        path.write_text(make(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
