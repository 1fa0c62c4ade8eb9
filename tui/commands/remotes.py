"""``bt-tui remotes``: which remotes there are, which is used, and where every value came from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from tui.commands.configured import remote_name
from tui.commands.exit_codes import ExitCode
from tui.commands.options import JSON, TABLE, Settings, examples, format_option, remote_option

if TYPE_CHECKING:
    from api_client.remotes import Remote
    from api_client.remotes.listing import ListedRemote
    from tui.commands.tables import Cell

USED_SIGN = "▸"
UNUSABLE = "cannot be used"
API_KEY_KIND, OAUTH_KIND = "api_key", "oauth"
KIND_WORDS = {API_KEY_KIND: "API key", OAUTH_KIND: "OAuth login"}


@click.command(
    short_help="Show where to connect, and where each setting of it comes from.",
    epilog=examples(
        "bt-tui remotes",
        "bt-tui remotes --remote staging",
        "bt-tui remotes -o json | jq -r '.[] | select(.selected) | .name'",
    ),
)
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def remotes(settings: Settings, output_format: str) -> ExitCode:
    """Show the remotes in the order in which they are considered, and which one is used.

    For every address, key and team it says where it came from: a variable, a section of ~/.trussrc, a
    profile of the Go CLI, the system's keyring. "local" is the emulator on this machine, which --remote local
    starts if it does not run. Keys themselves are never shown, nor any part of them.
    """
    from api_client.remotes.listing import list_remotes
    from tui.commands.local_remote import with_own_emulator

    name = remote_name(settings.remote_name, os.environ)
    listing = with_own_emulator(list_remotes(name, environ=os.environ), name)
    output = settings.output
    if output_format == JSON:
        output.json([_as_json(each) for each in listing.remotes])
    else:
        from tui.commands.tables import Column, render_table

        columns = (Column(" "), Column("REMOTE"), Column(""), Column("VALUE"), Column("FROM", shrinks=True))
        rows = [row for each in listing.remotes for row in _rows(each)]
        if rows:
            output.data(render_table(columns, rows, width_cells=output.width_cells, paint=output.paint))
        for each in listing.remotes:
            if each.problem:
                output.remark(f"{each.name}: {each.problem}")
    for warning in listing.warnings:
        output.remark(warning)
    if listing.problem is None:
        return ExitCode.OK
    output.remark(listing.problem)
    return ExitCode.USAGE if name is not None else ExitCode.OK


def _as_json(listed: ListedRemote) -> dict[str, Any]:
    remote = listed.remote
    shape: dict[str, Any] = {
        "name": listed.name,
        "source": listed.source,
        "selected": listed.is_selected,
        "app_url": None,
        "api_url": None,
        "credential": None,
        "team": None,
        "problem": listed.problem,
    }
    if remote is None:
        return shape
    expires_at = remote.login.tokens.expires_at if remote.login else None
    return shape | {
        "app_url": {"value": remote.app_url, "origin": remote.app_url_origin},
        "api_url": {"value": remote.api_url, "origin": remote.api_url_origin},
        "credential": {
            "kind": _kind(remote),
            "origin": remote.key_origin,
            "expires_at": expires_at.isoformat() if expires_at else None,
        },
        "team": {"value": remote.team, "origin": remote.team_origin} if remote.team else None,
    }


def _rows(listed: ListedRemote) -> list[list[Cell]]:
    from tui.commands.tables import Cell

    remote = listed.remote
    facts = [("key", Cell(UNUSABLE, "bad"), "")]
    if remote is None and listed.problem is None:
        facts = [("app", Cell("not running", "muted"), "--remote local starts an emulator on this machine")]
    elif remote is not None:
        facts = [
            ("app", Cell(remote.app_url), remote.app_url_origin),
            ("api", Cell(remote.api_url), remote.api_url_origin),
            ("key", Cell(_key_words(remote)), remote.key_origin),
        ]
        if remote.team:
            facts.append(("team", Cell(remote.team), remote.team_origin))
    mark = Cell(USED_SIGN if listed.is_selected else "", "good")
    name = Cell(listed.name, "strong")
    return [
        [
            mark if not index else Cell(""),
            name if not index else Cell(""),
            Cell(what, "muted"),
            value,
            Cell(origin, "muted"),
        ]
        for index, (what, value, origin) in enumerate(facts)
    ]


def _kind(remote: Remote) -> str:
    return OAUTH_KIND if remote.login else API_KEY_KIND


def _key_words(remote: Remote) -> str:
    words = KIND_WORDS[_kind(remote)]
    expires_at = remote.login.tokens.expires_at if remote.login else None
    return f"{words}, until {expires_at.astimezone():%Y-%m-%d %H:%M}" if expires_at else words
