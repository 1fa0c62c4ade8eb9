"""Every command by name: where it is and its line in ``bt-tui --help``.

A command line imports only the module of the command it names; the list of commands needs none.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from tui.commands.support.official import in_our_words
from tui.commands.support.options import CommandSettings

COMPLETION_VARIABLE = "_BT_TUI_COMPLETE"
"""Set by the shell's completion script; click derives its name from the program's."""

COMMANDS: Mapping[str, tuple[str, str]] = {
    "capacity": ("account.capacity:capacity", "Show GPU limits, use and the queue."),
    "cache": ("cache.command:cache", "Inspect the cache of a project."),
    "checkpoints": (
        "checkpoints.command:checkpoints",
        "List, inspect and download the checkpoints of a job.",
    ),
    "compare": ("jobs.compare:compare", "Compare jobs: results, loss and throughput."),
    "completion": ("app.completion:completion", "Print the completion script for your shell."),
    "config": ("account.config:config", "Show, edit and check the settings."),
    "cost": ("jobs.cost:cost", "Show what jobs have cost: billed, and estimated."),
    "delete": ("jobs.delete:delete", "Delete jobs, or a project with its jobs."),
    "demo": ("app.demo:demo", "Try the dashboard on demo data: no account, no GPU."),
    "deploy_checkpoints": ("deploy.command:deploy_checkpoints", "Deploy checkpoints of a job as a model."),
    "deployments": ("deploy.deployments:deployments", "List deployments; promote, stop or retry one."),
    "download": ("jobs.download:download", "Download the code of a job."),
    "emulator": ("app.emulator:emulator", "Serve the training API on this machine."),
    "health": ("jobs.health:health", "Report problems of a job, also as the exit code."),
    "init": ("jobs.init:init", "Write a starter project: config.py, run.sh, train.py."),
    "job": ("jobs.listing:job", "Show one job."),
    "jobs": ("jobs.listing:jobs", "List jobs, running ones first."),
    "login": ("account.login:login", "Store the API key of a remote."),
    "logout": ("account.login:logout", "Delete the API key of a remote."),
    "logs": ("logs.command:logs", "Print, filter, follow or save the log of a job."),
    "metrics": ("jobs.metrics:metrics", "Show GPU, CPU, memory and disk use of a job's nodes."),
    "open": ("app.open:open_file", "Open the dashboard on a recording."),
    "progress": ("jobs.progress:progress", "Show training progress from the log: step, loss, speed, ETA."),
    "projects": ("jobs.listing:projects", "List the projects that your key can access."),
    "push": ("jobs.push:push", "Submit a training job."),
    "record": ("jobs.record:record", "Record a run to a file that opens anywhere."),
    "recreate": ("jobs.recreate:recreate", "Submit a job again."),
    "remotes": ("account.login:remotes", "List remotes and where their settings come from."),
    "secrets": ("account.secrets:secrets", "List, set and delete secrets; values are never shown."),
    "serve": ("app.serve:serve", "Serve the dashboard in a browser."),
    "serve-page": ("app.serve:serve_page", ""),
    "sessions": ("sessions.command:sessions", "Show, extend or trigger the interactive sessions of a job."),
    "ssh": ("sessions.ssh:ssh", "Open a shell on a node of a job."),
    "ssh-config": ("sessions.ssh:ssh_config", "Let ssh, scp, rsync and editors reach nodes by name."),
    "ssh-proxy": ("sessions.ssh:ssh_proxy", ""),
    "ssh-sign": ("sessions.ssh:ssh_sign", ""),
    "status": ("jobs.status:status", "Print one line for tmux or a prompt."),
    "stop": ("jobs.stop:stop", "Stop jobs."),
    "update": ("jobs.stop:update", "Change the priority or capacity of a queued job."),
    "update_session": ("sessions.command:update_session", ""),
    "wait": ("jobs.wait:wait", "Wait until jobs end; the exit code is their result."),
    "watch": ("app.dashboard:watch", "Open the dashboard on one job."),
    "why": ("jobs.why:why", "Explain a job's problems: root cause, evidence, log lines."),
    "workstation": ("sessions.workstation:workstation", "Start a machine with GPUs to use over SSH."),
}
"""Module below ``tui.commands``, the command in it, and its help; commands without help are not listed."""

OTHER_WORDS: Mapping[str, str] = {
    "checkpoint": "checkpoints.command:checkpoints",
    "deploy-checkpoints": "deploy.command:deploy_checkpoints",
    "deploy_checkpoint": "deploy.command:deploy_checkpoints",
    "deploy": "deploy.command:deploy_checkpoints",
    "view": "jobs.listing:view",
    "get_checkpoint_urls": "checkpoints.download:urls",
    "isession": "sessions.command:sessions",
}
"""Command names of the official CLIs that differ from ours: they work but are not listed."""


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; command lines of the official CLIs become ours first."""
        args, shape = in_our_words(args)
        if shape is not None:
            settings = ctx.ensure_object(CommandSettings)
            ctx.obj = replace(settings, output=settings.output.with_json(shape=shape))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted; hidden ones are left out when they are shown."""
        return sorted([*COMMANDS, *OTHER_WORDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none with that name."""
        place, words = COMMANDS.get(cmd_name) or (OTHER_WORDS.get(cmd_name), "")
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = copy.copy(getattr(import_module(f"tui.commands.{module}"), attribute))
        command.short_help, command.hidden = words, not words
        if os.environ.get(COMPLETION_VARIABLE):
            from tui.commands.support.completing import complete_command_tree

            complete_command_tree(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items() if words])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names and options, without importing the commands."""
        found = [
            CompletionItem(name, help=words)
            for name, (_, words) in COMMANDS.items()
            if words and name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
