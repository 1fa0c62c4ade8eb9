"""Every action of the dashboard, once.

Footer, help screen, command palette and the README's table of keys all read this list, so that they
cannot disagree. ``id`` is also the name of the method that does it: ``action_<id>`` of the owner of
the scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Where an action works."""

    HOME = "home"
    JOB = "job"
    SUBMIT = "submit"
    DEPLOY = "deploy"
    SCREEN = "screen"  # every screen, each in its own way
    APP = "app"  # the same everywhere


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    ``keys`` are textual's key names, separated by commas; ``label`` is the footer's word, ``help`` a
    full sentence. ``in_footer`` asks for a place in the footer, where room is scarce. ``dangerous``
    ones ask before they act, and are off when the dashboard is read-only.
    """

    id: str
    scope: Scope
    keys: str
    label: str
    help: str
    in_footer: bool = False
    dangerous: bool = False


ACTIONS: tuple[Action, ...] = (
    Action("open_job", Scope.HOME, "enter", "open", "Open the job under the cursor."),
    Action(
        "filter",
        Scope.HOME,
        "slash",
        "filter",
        "Filter the jobs, as in: llama status:running gpu:h100 age<2d.",
        in_footer=True,
    ),
    Action(
        "sort",
        Scope.HOME,
        "S",
        "sort",
        "Sort by the next column; clicking a heading sorts too.",
        in_footer=True,
    ),
    Action("reverse_sort", Scope.HOME, "V", "reverse", "Turn the order of the sort around."),
    Action("new_job", Scope.HOME, "n", "new", "Submit a new job from a config file.", in_footer=True),
    Action("toggle_projects", Scope.HOME, "p", "projects", "Show or hide the list of projects."),
    Action("deploy", Scope.HOME, "d", "deploy", "Deploy checkpoints of the job under the cursor."),
    Action(
        "stop_job", Scope.HOME, "s", "stop", "Stop the job under the cursor.", in_footer=True, dangerous=True
    ),
    Action(
        "recreate_job",
        Scope.HOME,
        "R",
        "run again",
        "Start a new job like the one under the cursor.",
        dangerous=True,
    ),
    Action("copy_id", Scope.HOME, "y", "copy id", "Copy the id of the job under the cursor."),
    Action("open_browser", Scope.HOME, "o", "browser", "Open the job under the cursor in the browser."),
    Action("show_live", Scope.JOB, "1", "Live", "Nodes, charts and the end of the log together."),
    Action("show_logs", Scope.JOB, "2", "Logs", "The log over the whole screen."),
    Action("show_metrics", Scope.JOB, "3", "Metrics", "The charts over the whole screen."),
    Action("show_checkpoints", Scope.JOB, "4", "Checkpoints", "The checkpoints that the job has written."),
    Action(
        "show_details", Scope.JOB, "5", "Details", "Everything the API says about the job, and its history."
    ),
    Action("next_tab", Scope.JOB, "tab", "next tab", "The next tab."),
    Action("previous_tab", Scope.JOB, "shift+tab", "previous tab", "The previous tab."),
    Action(
        "toggle_follow",
        Scope.JOB,
        "f",
        "follow",
        "Follow the end of the log, or stay where you are.",
        in_footer=True,
    ),
    Action("find_in_log", Scope.JOB, "slash", "find", "Find a text in the log.", in_footer=True),
    Action("next_match", Scope.JOB, "n", "next match", "The next line with the text."),
    Action("previous_match", Scope.JOB, "N", "previous match", "The previous line with the text."),
    Action("filter_log", Scope.JOB, "ampersand", "filter", "Show only the log lines with a text."),
    Action(
        "next_node",
        Scope.JOB,
        "right_square_bracket",
        "node",
        "The next node alone; then all.",
        in_footer=True,
    ),
    Action("previous_node", Scope.JOB, "left_square_bracket", "previous node", "The previous node alone."),
    Action("next_chart", Scope.JOB, "m", "chart", "The next chart.", in_footer=True),
    Action("next_span", Scope.JOB, "plus,equals_sign", "longer", "Charts over a longer time."),
    Action("previous_span", Scope.JOB, "minus", "shorter", "Charts over a shorter time."),
    Action("matrix_metric", Scope.JOB, "u", "util/mem", "The node × GPU cells show utilisation, or memory."),
    Action("toggle_wrap", Scope.JOB, "w", "wrap", "Wrap long log lines, or cut them."),
    Action("next_time_mode", Scope.JOB, "t", "time", "Log times as clock, as age, or off."),
    Action("deploy", Scope.JOB, "d", "deploy", "Deploy this job's checkpoints.", in_footer=True),
    Action("stop_job", Scope.JOB, "s", "stop", "Stop this job.", in_footer=True, dangerous=True),
    Action("recreate_job", Scope.JOB, "R", "run again", "Start a new job like this one.", dangerous=True),
    Action("copy_id", Scope.JOB, "y", "copy id", "Copy the job's id."),
    Action("open_browser", Scope.JOB, "o", "browser", "Open the job in the browser."),
    Action("submit", Scope.SUBMIT, "ctrl+s", "submit", "Submit the job that is shown.", in_footer=True),
    Action("next", Scope.DEPLOY, "ctrl+s", "next", "Go on with what is answered.", in_footer=True),
    Action(
        "previous", Scope.DEPLOY, "ctrl+b", "back", "The question before; answers are kept.", in_footer=True
    ),
    Action(
        "copy", Scope.DEPLOY, "ctrl+y", "copy", "Copy what is shown: the config, or how to call the model."
    ),
    Action("back", Scope.SCREEN, "escape", "back", "One step out: of the filter, then of the screen."),
    Action("refresh", Scope.SCREEN, "r", "refresh", "Ask the server now."),
    Action("command_palette", Scope.APP, "colon,ctrl+p", "commands", "Find any action by its name."),
    Action("help", Scope.APP, "question_mark", "help", "The keys that work here.", in_footer=True),
    Action("quit", Scope.APP, "q", "quit", "Leave. Jobs go on without it.", in_footer=True),
)
"""All actions, in the order in which people should meet them."""


def actions_of(scope: Scope) -> tuple[Action, ...]:
    """The actions of one scope, in order."""
    return tuple(action for action in ACTIONS if action.scope is scope)
