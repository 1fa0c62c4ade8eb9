"""Actions of the Checkpoints tab."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("open_checkpoint", Scope.CHECKPOINTS, "enter", "files", "Browse the checkpoint's files."),
    Action(
        "download_checkpoint",
        Scope.CHECKPOINTS,
        "D",
        "download",
        "Download the marked checkpoints, or the selected one.",
        in_footer=True,
    ),
    Action(
        "mark_checkpoint",
        Scope.CHECKPOINTS,
        "space",
        "mark",
        "Mark the checkpoint for comparing or downloading.",
    ),
    Action(
        "compare_checkpoints",
        Scope.CHECKPOINTS,
        "equals_sign",
        "compare",
        "Compare two marked checkpoints: size, files, step, adapter config.",
        in_footer=True,
    ),
    Action(
        "copy_load_config",
        Scope.CHECKPOINTS,
        "L",
        "resume from",
        "Copy the LoadCheckpointConfig that resumes training from this checkpoint.",
    ),
    Action(
        "sort_checkpoints",
        Scope.CHECKPOINTS,
        "S",
        "sort",
        "Sort by the next column: created, name, step, size, type.",
    ),
    Action("reverse_checkpoints", Scope.CHECKPOINTS, "V", "reverse", "Reverse sort order."),
)
