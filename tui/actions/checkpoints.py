"""On the tab Checkpoints."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "open_checkpoint", Scope.CHECKPOINTS, "enter", "files", "Look into the checkpoint under the cursor."
    ),
    Action(
        "download_checkpoint",
        Scope.CHECKPOINTS,
        "D",
        "download",
        "Download the marked checkpoints; without marks, the one under the cursor.",
        in_footer=True,
    ),
    Action(
        "mark_checkpoint", Scope.CHECKPOINTS, "space", "mark", "Mark the checkpoint, to compare or download."
    ),
    Action(
        "compare_checkpoints",
        Scope.CHECKPOINTS,
        "equals_sign",
        "compare",
        "Compare the two marked checkpoints: size, files, step, adapter config.",
        in_footer=True,
    ),
    Action(
        "copy_load_config",
        Scope.CHECKPOINTS,
        "L",
        "resume from",
        "Copy the LoadCheckpointConfig that resumes training from the checkpoint.",
    ),
    Action(
        "sort_checkpoints",
        Scope.CHECKPOINTS,
        "S",
        "sort",
        "Sort by the next column: written, name, step, size, type.",
    ),
    Action("reverse_checkpoints", Scope.CHECKPOINTS, "V", "reverse", "Turn the order of the sort around."),
)
