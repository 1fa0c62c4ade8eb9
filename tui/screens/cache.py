"""The contents of a project's cache, and the directories that use the most space."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.reactive import var

from tui.actions.table import Scope
from tui.analysis.file_tree.rows import Order, SortKey
from tui.analysis.file_tree.tree import ROOT, FileTree
from tui.feeds.files import CacheFeed, CacheSnapshot
from tui.screens.base import FeedFactory, Page, PageServices
from tui.screens.file_tree import TreeScreen
from tui.screens.filter_field import FilterField
from tui.tables.column import Span
from tui.text.sanitize import sanitize
from tui.text.units import age, bytes_iec, counted, percent
from tui.widgets.file_tree import FileTreeView, middle_cut
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText

NO_CACHE_TEXT = (
    "This project has no cache yet.\n\nSet cache_config in a config.py to use one; its files outlive the job."
)


class CacheScreen(TreeScreen):
    CSS_PATH = "cache.tcss"
    SCOPES = (Scope.CACHE,)
    _feed: CacheFeed

    snapshot: var[CacheSnapshot] = var(CacheSnapshot())

    def __init__(
        self, project: str, make_feed: FeedFactory, *, now_s: Callable[[], float] = time.time
    ) -> None:
        super().__init__(make_feed)
        self._now_s = now_s
        self._project = sanitize(project)

    def compose_body(self) -> ComposeResult:
        yield WrappedText(id="stale")
        yield StatusLine(id="biggest")
        yield FilterField("text or pattern: qwen, *.safetensors, hub/*/snapshots/*")
        yield FileTreeView(
            order=Order(SortKey.SIZE, descending=True),
            now_s=self._now_s,
            empty_text="No paths match the filter.",
            id="tree",
        )
        yield WrappedText(id="instead")

    def on_mount(self) -> None:
        self.set_interval(10.0, self._show_header)  # the header shows an age

    def _show(self, previous: CacheSnapshot | None, snapshot: CacheSnapshot) -> None:
        """Show the files; while loading, without a cache or files, or after an error, a text.

        After an error, files from an earlier snapshot stay, with a notice that they are stale.
        """
        if previous is None or previous.entries is not snapshot.entries:
            self.tree_view.set_entries(snapshot.entries)
        self._show_header()
        self.show_stale(snapshot.error if snapshot.exists is not None else "")
        empty_text = self._empty_text(snapshot)
        self.show_text("#instead", empty_text)
        for selector in ("#tree", "#biggest"):
            self.query_one(selector).set_class(bool(empty_text), "-hidden")

    def _empty_text(self, snapshot: CacheSnapshot) -> str:
        if snapshot.entries:
            return ""
        if snapshot.exists is None:
            if snapshot.error:
                retry_hint = f"Press {self.key_for('screen.refresh')} to retry."
                return f"✗ Can't read the cache.\n\n{snapshot.error}\n\n{retry_hint}"
            return "Loading the cache…"
        return "The cache is empty: the latest job left nothing in it." if snapshot.exists else NO_CACHE_TEXT

    @on(FileTreeView.Arranged)
    def _show_header(self) -> None:
        snapshot, tree = self.snapshot, self.tree_view.file_tree
        facts: list[list[Span]] = self.filter_facts()
        priority_count = 1 + (len(facts) or 1)
        if snapshot.entries and tree is not None:
            facts.append([(bytes_iec(tree.total_bytes), "strong")])
            facts.append([(counted(tree.file_count, "file"), "plain")])
        if snapshot.captured_s is not None:
            seconds = self._now_s() - snapshot.captured_s
            facts.append([(f"captured {age(seconds)} ago", "muted")])
        if snapshot.is_loading and snapshot.exists is not None:
            facts.append([("↻ refreshing", "muted")])
        self.set_header("Cache", self._project, facts, priority_count)
        self._show_biggest()

    def _show_biggest(self) -> None:
        tree = self.tree_view.file_tree
        largest = tree.largest_directories(6) if tree is not None else []
        facts: list[list[Span]] = [
            [
                (f"{percent(tree.share_of_total(node))} ", "strong"),
                (middle_cut(sanitize(_descriptive_name(tree, node)), 34), "plain"),
                (f" {bytes_iec(tree.sizes[node])}", "muted"),
            ]
            for node in largest
            if tree is not None
        ]
        self.query_one("#biggest", StatusLine).set_facts(facts)

    # Actions

    def action_delete(self) -> None:
        self.notify("The API can only list a cache; a job's start commands can delete or copy its files.")

    def action_back(self) -> None:
        if not self.leave_filter():
            self.leave()


def _descriptive_name(tree: FileTree, node: int) -> str:
    """Return a directory's display name: for a Hugging Face Hub snapshot, the model's name."""
    while (
        re.fullmatch(r"[0-9a-f]{8,}|snapshots|blobs|refs|data", tree.names[node])
        and tree.parents[node] != ROOT
    ):
        node = tree.parents[node]
    return tree.names[node]


@dataclass(frozen=True, eq=False)
class CachePage(Page):
    """The page with the cache of a project."""

    project_id: str
    name: str

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.project_id,)

    def open(self, services: PageServices) -> CacheScreen:
        return CacheScreen(
            self.name,
            lambda publish: CacheFeed(services.session, self.project_id, publish=publish),
            now_s=services.now_s,
        )
