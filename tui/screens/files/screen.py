"""The files of a checkpoint by node, and a preview of the selected file, which needs no download."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from tui.actions.table import Scope
from tui.analysis.checkpoints.facts import checkpoint_entries
from tui.analysis.transfers import DownloadRequest
from tui.feeds.files import CheckpointFilesFeed, FilesSnapshot
from tui.screens.base import FeedFactory, Page, PageServices
from tui.screens.file_tree import TreeScreen
from tui.screens.files.preview import PreviewPane
from tui.screens.filter_field import FilterField
from tui.screens.messages import DownloadRequested
from tui.tables.column import Span
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, count, counted
from tui.widgets.file_tree import FileTreeView
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText

NO_FILES_TEXT = (
    "No files stored for this checkpoint.\n\nThey appear as they are uploaded; press {key} to refresh."
)


class FilesScreen(TreeScreen):
    """The files of one checkpoint; ``make_feed`` creates the feed that lists them."""

    CSS_PATH = "files.tcss"
    SCOPES = (Scope.FILES,)
    _feed: CheckpointFilesFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]

    snapshot: var[FilesSnapshot] = var(FilesSnapshot())

    def __init__(
        self,
        job: TrainingJob,
        checkpoint: Checkpoint,
        make_feed: FeedFactory,
        *,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(make_feed)
        self._now_s = now_s
        self._job = job
        self._checkpoint = checkpoint
        self._preview = PreviewPane(self._feed.preview, now_s=now_s, id="preview")

    def compose_body(self) -> ComposeResult:
        yield WrappedText(id="stale")
        yield FilterField("text or pattern: adapter, *.json")
        with Vertical(id="body"):
            yield FileTreeView(now_s=self._now_s, empty_text="No paths match the filter.", id="tree")
            yield self._preview
        yield WrappedText(id="instead")

    @property
    def _files(self) -> tuple[CheckpointFile, ...]:
        return self.snapshot.files or ()

    def _files_at(self, nodes: Iterable[int]) -> tuple[CheckpointFile, ...]:
        """Return the files at nodes of the tree; skip directories, and files that are no longer listed."""
        files, tree = self._files, self.tree_view.file_tree
        indexes = sorted({tree.entry_indexes[node] for node in nodes}) if tree is not None else []
        return tuple(files[index] for index in indexes if 0 <= index < len(files))

    # Updates from the feed

    def _show(self, previous: FilesSnapshot | None, snapshot: FilesSnapshot) -> None:
        """Show the files; while loading, without files, or after an error, a text.

        After an error, files from an earlier snapshot stay, with a notice that they are stale.
        """
        if previous is None or previous.files is not snapshot.files:
            has_several_ranks = len({file.node_rank for file in self._files}) > 1
            self.tree_view.set_entries(
                checkpoint_entries(self._files, self._checkpoint.checkpoint_id, by_rank=has_several_ranks)
                if self._files
                else None
            )
        self.show_stale(snapshot.error if snapshot.files is not None else "")
        empty_text = self._empty_text(snapshot)
        self.show_text("#instead", empty_text)
        self.set_class(bool(empty_text), "-instead")
        self._show_header()

    def _empty_text(self, snapshot: FilesSnapshot) -> str:
        if self._files:
            return ""
        if snapshot.is_loading:
            return "Listing files…"
        key = self.key_for("screen.refresh")
        if snapshot.error:
            return f"✗ Can't list the files.\n\n{snapshot.error}\n\nPress {key} to retry."
        return NO_FILES_TEXT.format(key=key)

    @on(FileTreeView.Arranged)
    @on(FileTreeView.MarksChanged)
    def _show_header(self) -> None:
        checkpoint, tree = self._checkpoint, self.tree_view.file_tree
        job = sanitize(self._job.name or self._job.id)
        facts: list[list[Span]] = [
            [("‹ ", "muted"), (f"{job} ▸ ", "muted"), (sanitize(checkpoint.checkpoint_id), "key")]
        ]
        facts += self.filter_facts()
        priority_count = len(facts)
        marked_count = len(self.tree_view.marked)
        if marked_count:
            facts.append([(f"✓ {count(marked_count)} marked", "good")])
        if priority_count == 1 and tree is not None:
            facts.append([(bytes_iec(tree.total_bytes), "strong")])
            facts.append([(counted(tree.file_count, "file"), "plain")])
        is_uploading = (checkpoint.sync_status or "").upper() == "SYNCING"
        facts += [
            [("↻ listing" if self.snapshot.is_loading else "", "muted")],
            [("↑ uploading" if is_uploading else "", "caution")],
            [(sanitize(checkpoint.checkpoint_type or ""), "muted")],
            [(sanitize(checkpoint.base_model or ""), "muted")],
        ]
        self.query_one("#header", StatusLine).set_facts(
            [fact for fact in facts if fact[0][0]], priority_count
        )

    # The item under the cursor

    def _file_at(self, node: int) -> CheckpointFile | None:
        tree = self.tree_view.file_tree
        if tree is None or tree.is_directory(node):
            return None
        return next(iter(self._files_at([node])), None)

    @on(FileTreeView.Highlighted)
    def _cursor_moved(self) -> None:
        node, tree = self.tree_view.cursor_row, self.tree_view.file_tree
        if node is None or tree is None:
            self._preview.show_nothing()
        elif (file := self._file_at(node)) is not None:
            self._preview.show_file(file)
        else:
            self._preview.show_directory(
                sanitize(tree.names[node]),
                tree.file_counts[node],
                tree.sizes[node],
                tree.newest_s[node],
            )

    @on(FileTreeView.FileChosen)
    def _file_chosen(self) -> None:
        self.remove_class("-no-preview")
        self.add_class("-whole")
        self.set_focus(self._preview.query_one("#preview-lines"))

    def _files_to_download(self) -> tuple[CheckpointFile, ...]:
        """Return the files that are marked, in marked directories, or under the cursor if none is marked."""
        tree, node = self.tree_view.file_tree, self.tree_view.cursor_row
        if tree is None:
            return ()
        selected_nodes = self.tree_view.marked or ({node} if node is not None else frozenset())
        return self._files_at(
            node_below for selected_node in selected_nodes for node_below in tree.files_below(selected_node)
        )

    # Actions

    def action_open_node(self) -> None:
        if self.has_class("-whole"):
            self._leave_full_view()
        else:
            super().action_open_node()

    def action_mark(self) -> None:
        if not self.has_class("-whole"):
            self.tree_view.toggle_mark()

    def action_download(self) -> None:
        files = self._files_to_download()
        if not files:
            self.notify("Nothing to download here.")
            return
        size = sum(file.size_bytes or 0 for file in files)
        names, by_rank = (self._checkpoint.checkpoint_id,), self.snapshot.by_rank
        self.post_message(
            DownloadRequested(
                DownloadRequest(self._job, names, files=files, by_rank=by_rank, size_bytes=size)
            )
        )

    def action_filter(self) -> None:
        self._leave_full_view()
        super().action_filter()

    def action_toggle_preview(self) -> None:
        self._leave_full_view()
        self.toggle_class("-no-preview")

    def path_under_cursor(self) -> str | None:
        """Return a file's path on the server, without the node directory that the tree adds."""
        node = self.tree_view.cursor_row
        file = self._file_at(node) if node is not None else None
        return file.relative_file_name if file is not None else super().path_under_cursor()

    def action_refresh(self) -> None:
        self._feed.refresh()
        self._preview.clear_cache()
        self._cursor_moved()

    def _leave_full_view(self) -> bool:
        if not self.has_class("-whole"):
            return False
        self.remove_class("-whole")
        self.set_focus(self.tree_view)
        return True

    def action_back(self) -> None:
        if self._leave_full_view() or self.leave_filter():
            return
        if self._preview.has_focus_within:
            self.set_focus(self.tree_view)
        elif not self.tree_view.clear_marks():
            self.leave()


@dataclass(frozen=True, eq=False)
class FilesPage(Page):
    """The page with the files of a checkpoint."""

    job: TrainingJob
    checkpoint: Checkpoint

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.job.id, self.checkpoint.checkpoint_id)

    def open(self, services: PageServices) -> FilesScreen:
        return FilesScreen(
            self.job,
            self.checkpoint,
            lambda publish: CheckpointFilesFeed(services.session, self.job, self.checkpoint, publish=publish),
            now_s=services.now_s,
        )
