"""``bt-tui completion``: what a shell needs to complete this program's words."""

from __future__ import annotations

import click

from tui.commands.support.catalogue import SHELL_ASKS
from tui.commands.support.exit_codes import ExitCode
from tui.commands.support.options import Settings, examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    short_help="Print the script that completes commands in your shell.",
    epilog=examples(
        "bt-tui completion bash >> ~/.bashrc",
        "bt-tui completion zsh >> ~/.zshrc",
        "bt-tui completion fish > ~/.config/fish/completions/bt-tui.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> ExitCode:
    """Print the script that lets bash, zsh or fish complete commands, options and what the server has.

    Ids of jobs, names of projects and checkpoints, and remotes: at tab the chosen remote is asked, for two
    seconds at the most; if it does not answer, they are those that it told last. They are kept, without
    a key, in a private file.

    Shells that are opened after the script was put in its place, as below, complete by it.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = context.find_root()
    script = found(root.command, {}, "bt-tui", SHELL_ASKS)
    text = script.source_template % script.source_vars()
    context.ensure_object(Settings).output.data(text + "\n")
    return ExitCode.OK
