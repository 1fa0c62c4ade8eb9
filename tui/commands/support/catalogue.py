"""Maps every command name to its module, so that a command line imports only the command it names."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click

COMPLETION_VARIABLE = "_BT_TUI_COMPLETE"
"""Environment variable set by the shell's completion script; click derives it from the program's name."""

PLACES: Mapping[str, str] = {
    "projects": "jobs.listing:projects",
    "jobs": "jobs.listing:jobs",
    "job": "jobs.listing:job",
    "logs": "logs.command:logs",
    "metrics": "jobs.metrics:metrics",
    "progress": "jobs.progress:progress",
    "health": "jobs.health:health",
    "compare": "jobs.compare:compare",
    "capacity": "account.capacity:capacity",
    "push": "jobs.push:push",
    "workstation": "sessions.workstation:workstation",
    "recreate": "jobs.recreate:recreate",
    "stop": "jobs.stop:stop",
    "update": "jobs.stop:update",
    "wait": "jobs.wait:wait",
    "sessions": "sessions.command:sessions",
    "ssh": "sessions.ssh:ssh",
    "cache": "cache.command:cache",
    "checkpoints": "checkpoints.command:checkpoints",
    "download": "jobs.download:download",
    "deploy_checkpoints": "deploy.command:deploy_checkpoints",
    "init": "jobs.init:init",
    "watch": "app.dashboard:watch",
    "serve": "app.serve:serve",
    "serve-page": "app.serve:serve_page",
    "demo": "app.demo:demo",
    "emulator": "app.emulator:emulator",
    "config": "account.config:config",
    "completion": "app.completion:completion",
    "remotes": "account.login:remotes",
    "login": "account.login:login",
    "logout": "account.login:logout",
    "secrets": "account.secrets:secrets",
    "ssh-config": "sessions.ssh:ssh_config",
    "ssh-sign": "sessions.ssh:ssh_sign",
    "ssh-proxy": "sessions.ssh:ssh_proxy",
    "update_session": "sessions.command:update_session",
}
"""Command name → module in this package and the command in it."""

OTHER_WORDS: Mapping[str, str] = {
    "deploy-checkpoints": "deploy.command:deploy_checkpoints",
    "deploy": "deploy.command:deploy_checkpoints",
    "view": "jobs.listing:view",
    "get_checkpoint_urls": "checkpoints.download:urls",
    "isession": "sessions.command:sessions",
}
"""Command names of the official CLI that differ from ours: they work but are hidden from all lists."""


class CommandRegistry(MutableMapping[str, click.Command]):
    """The commands, each imported on first use: importing forty modules is a fifth of a short run."""

    def __init__(self) -> None:
        self._places = {**PLACES, **OTHER_WORDS}
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            command: click.Command = getattr(import_module(f"tui.commands.{module}"), attribute)
            if os.environ.get(COMPLETION_VARIABLE):
                from tui.commands.support.completing import complete_command_tree

                complete_command_tree(command)
            self._loaded[name] = _hidden(command) if name in OTHER_WORDS else command
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places[name] = ""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _hidden(command: click.Command) -> click.Command:
    twin = copy.copy(command)
    twin.hidden = True
    return twin
