"""Files as a tree: totals, hostile paths, order, filter, and what is on show."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tui.analysis.file_tree.rows import BY_NAME, Matches, Order, SortKey, VisibleRows, filtered, name_key
from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree


def names(tree: FileTree, nodes: list[int]) -> list[str]:
    return [tree.names[node] for node in nodes]


def all_open(tree: FileTree, order: Order = BY_NAME, matches: Matches | None = None) -> VisibleRows:
    return VisibleRows(tree, order=order, matches=matches, open_nodes=set(range(len(tree))))


def shown(tree: FileTree, order: Order = BY_NAME, open_all: bool = True) -> list[str]:
    rows = all_open(tree, order) if open_all else VisibleRows(tree, order=order)
    return names(tree, rows.nodes)


HUB = [
    FileEntry("hub", 4096, 5.0, "directory"),
    FileEntry("hub/llama/model-2.safetensors", 300, 20.0),
    FileEntry("hub/llama/model-10.safetensors", 100, 10.0),
    FileEntry("hub/llama/config.json", 1, 30.0),
    FileEntry("hub/qwen/model.safetensors", 50, None),
    FileEntry("notes.txt", 49, 1.0),
    FileEntry("empty", 4096, 2.0, "directory"),
]


def test_orders() -> None:
    tree = FileTree(HUB)
    by_name = ["empty", "hub", "llama", "config.json", "model-2.safetensors", "model-10.safetensors"]
    assert shown(tree)[:6] == by_name
    assert shown(tree, Order(SortKey.SIZE, descending=True), open_all=False) == ["hub", "notes.txt", "empty"]
    assert shown(tree, Order(SortKey.TIME), open_all=False) == ["notes.txt", "hub", "empty"]
    assert shown(tree, Order(SortKey.TYPE), open_all=False) == ["empty", "hub", "notes.txt"]


MODELS = {"model-2.safetensors", "model-10.safetensors"}
KEPT = {
    "MODEL": ({*MODELS, "model.safetensors"}, 450),
    "*.json": ({"config.json"}, 1),
    "llama": ({*MODELS, "config.json"}, 401),
    "nothing like it": (set(), 0),
}


@pytest.mark.parametrize("pattern", KEPT)
def test_a_filter_keeps_matches_their_directories_and_what_is_in_matching_ones(pattern: str) -> None:
    tree = FileTree(HUB)
    matches = filtered(tree, pattern)
    rows = all_open(tree, matches=matches)
    files = {tree.names[node] for node in rows.nodes if not tree.is_directory(node)}
    assert (files, matches.sizes[ROOT]) == KEPT[pattern]
    assert matches.file_counts[ROOT] == len(files)
    assert {tree.parents[node] for node in rows.nodes} <= {ROOT, *rows.nodes}


PATHS = {
    "../../etc/passwd": ["..", "..", "etc", "passwd"],
    "/root/.cache/x": ["root", ".cache", "x"],
    "a//b/./c": ["a", "b", "c"],
    "[red]x[/red]/\x00\x1b[2J": ["[red]x[", "red]", "\x00\x1b[2J"],
    "": [""],
    "a/": ["a", "a/"],
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_data_and_leads_nowhere_but_down(path: str) -> None:
    tree = FileTree([FileEntry(path, 7)])
    assert shown(tree) == PATHS[path]
    assert (tree.path(len(tree) - 1), tree.total_bytes) == (path, 7)


def test_ten_thousand_levels_take_few_rows() -> None:
    path = "d/" * 10_000 + "f"
    tree = FileTree([FileEntry(path, 3)])
    rows = all_open(tree)
    assert len(rows.nodes) < 100
    assert (tree.total_bytes, tree.path(len(tree) - 1)) == (3, path)
    assert filtered(tree, "f").file_counts[ROOT] == 1
    assert len(rows.toggled(rows.nodes[0]).nodes) == 1
    assert len(tree.largest_directories(5)) == 1, "not those that only lead to another"


def test_deep_folders_of_many_files_take_few_nodes() -> None:
    entries = [FileEntry(f"{number}/" + "d/" * 60 + "f", 1) for number in range(10_000)]
    tree = FileTree(entries)
    assert len(tree) < 300_000
    assert (tree.file_count, tree.total_bytes) == (10_000, 10_000)


SEGMENTS = st.text(alphabet="ab.-1/ \x00", max_size=8)
KINDS = st.sampled_from(("file", "directory"))
ENTRIES = st.lists(
    st.builds(FileEntry, SEGMENTS, st.integers(-5, 100), st.none() | st.floats(0, 9), KINDS), max_size=12
)


@given(ENTRIES, st.sampled_from(list(SortKey)), st.booleans(), st.sampled_from(("a", "*b", "a/", "1")))
def test_nothing_is_lost_or_counted_twice(
    entries: list[FileEntry], key: SortKey, descending: bool, pattern: str
) -> None:
    tree = FileTree(entries)
    files = [entry for entry in entries if not entry.is_directory]
    assert tree.file_count == len(files)
    assert tree.total_bytes == sum(max(0, entry.size_bytes) for entry in files)
    rows = all_open(tree, Order(key, descending))
    assert sorted(rows.nodes) == list(range(1, len(tree)))
    matches = filtered(tree, pattern)
    kept = [node for node in range(1, len(tree)) if matches.is_kept[node] and not tree.is_directory(node)]
    assert matches.file_counts[ROOT] == len(kept)
    assert matches.sizes[ROOT] == sum(tree.sizes[node] for node in kept)


@pytest.mark.parametrize("descending", [False, True])
def test_many_files_are_sorted_in_runs(*, descending: bool) -> None:
    tree = FileTree(
        [FileEntry(f"flat/{number % 977:04}-{number}", number % 7_919) for number in range(20_000)]
    )
    rows = all_open(tree, Order(SortKey.SIZE, descending))
    keys = [
        ((-1 if descending else 1) * tree.sizes[node], name_key(tree.names[node])) for node in rows.nodes[1:]
    ]
    assert keys == sorted(keys)


def test_a_closed_directory_opens_with_those_below_it_as_they_were() -> None:
    tree = FileTree(HUB)
    rows = all_open(tree)
    hub = next(node for node in rows.nodes if tree.names[node] == "hub")
    before = list(rows.nodes)
    rows = rows.toggled(hub)
    assert names(tree, rows.nodes) == ["empty", "hub", "notes.txt"]
    assert rows.toggled(hub).nodes == before
    assert rows.toggled(hub).toggled_below(hub).toggled_below(hub).nodes == before
