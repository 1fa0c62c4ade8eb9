"""``bt-tui cache``: what lies in a project's cache."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.official_options import (
    DESCENDING,
    listing_format_option,
    order_option,
    project_named,
)
from tui.commands.options import CSV, JSON, Settings, examples, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models.cache_listing import CacheListing

SORTS = ("filepath", "size", "modified", "type", "permissions")


@click.group(epilog=examples("bt-tui cache summarize llama-sft", "bt-tui cache summarize --help"))
def cache() -> None:
    """Look into the cache of a project."""


@cache.command(
    short_help="List the files of a project's cache.",
    epilog=examples(
        "bt-tui cache summarize llama-sft",
        "bt-tui cache summarize llama-sft --sort size --order desc | head",
        "bt-tui cache summarize llama-sft --by-directory 3",
        "bt-tui cache summarize llama-sft -o json | jq .total_size_human_readable",
    ),
)
@click.argument("project", metavar="PROJECT")
@click.option("--sort", type=click.Choice(SORTS), default="filepath", show_default=True, help="Sort by this.")
@order_option
@click.option(
    "--by-directory",
    "depth",
    type=click.IntRange(1, 100),
    metavar="DEPTH",
    help="Directories alone, down to this depth, with their totals; the largest first.",
)
@listing_format_option
@remote_option
@click.pass_obj
def summarize(
    settings: Settings, project: str, sort: str, order: str, depth: int | None, output_format: str
) -> ExitCode:
    """List what the most recent job of a project (id or name) left in its cache.

    A directory's size is that of all that is in it. Without a cache the exit code is 7 and JSON and CSV are
    as empty as the official ones; an empty cache is no failure.
    """

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        found = await project_named(client, project)
        listing = await client.cache.listing(found.id)
        if listing is None:
            _print(output, None, found.id, output_format, 0)
            raise CommandFailed(f"project {found.name} has no cache", ExitCode.NOT_FOUND)
        output.remark(_headline(listing, found.name))
        if depth is not None:
            from tui.commands.cache_directories import print_directories

            print_directories(output, listing, found.id, depth, output_format)
            return ExitCode.OK
        from tui.commands.cache_listing import prepare

        total_bytes = prepare(listing, sort, descending=order == DESCENDING)
        _print(output, listing, found.id, output_format, total_bytes)
        return ExitCode.OK

    with _without_looking_for_cycles():
        return run_on_remote(settings, show)


@contextmanager
def _without_looking_for_cycles() -> Iterator[None]:
    """Records that refer to nothing: to look through 100,000 of them again and again takes a sixth of all."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _print(
    output: Output, listing: CacheListing | None, project_id: str, output_format: str, total_bytes: int
) -> None:
    from tui.commands.cache_listing import print_csv, print_json, print_table

    if output_format == JSON:
        print_json(output, listing, project_id, total_bytes)
    elif output_format == CSV:
        print_csv(output, listing)
    elif listing is not None:
        print_table(output, listing, total_bytes)


def _headline(listing: CacheListing, name: str) -> str:
    from tui.commands.official_options import local_time

    if not listing.files:
        return f"the cache of {name} is empty, as of {local_time(listing.timestamp) or 'an unknown time'}"
    return f"the cache of {name} as of {local_time(listing.timestamp) or 'an unknown time'}"
