"""``bt-tui completion``: Print the completion script for your shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tui.commands.support.catalogue import COMPLETION_VARIABLE
from tui.commands.support.options import CommandSettings, examples

SHELLS = ("bash", "zsh", "fish")


@examples(
    "bt-tui completion bash >> ~/.bashrc",
    "bt-tui completion zsh >> ~/.zshrc",
    "bt-tui completion fish > ~/.config/fish/completions/bt-tui.fish",
)
@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets bash, zsh or fish complete commands, options and names from the server.

    Job ids, project names, checkpoint names and remotes complete too: each tab press queries the chosen
    remote for at most two seconds and falls back to its last answer. Answers are cached, without a key,
    in a private file.

    Install the script as shown below; completion works in shells opened after that.
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    root = context.find_root()
    script = shell_class(root.command, {}, "bt-tui", COMPLETION_VARIABLE)
    text = script.source_template % script.source_vars()
    context.ensure_object(CommandSettings).output.data(text + "\n")
