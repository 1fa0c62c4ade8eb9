"""The matrix shows every GPU of every node, and picks nodes by key and mouse."""

from __future__ import annotations

import math
from dataclasses import replace

from widget_text import WidgetApp, full_lines, shown

from tui.analysis.series import Series
from tui.widgets.gpu_matrix import Frame, GpuMatrix, MatrixRow


class MatrixApp(WidgetApp):
    """Keeps the names that were picked."""

    def __init__(self, widget: GpuMatrix) -> None:
        super().__init__(widget)
        self.picked: list[str] = []

    def on_gpu_matrix_node_selected(self, message: GpuMatrix.NodeSelected) -> None:
        self.picked.append(message.name)


HISTORY = Frame(over_time=True, start=0.0, end=100.0, facts=("cores", "memory"))


def row(number: int, *values: float | None, note: str = "") -> MatrixRow:
    known = [value for value in values if value is not None]
    return MatrixRow(f"node-{number}", note, values, sum(known) / len(known) if known else None)


def cluster(count: int) -> list[MatrixRow]:
    return [row(number, *(0.97 for _ in range(8))) for number in range(count)]


def matrix_of(rows: list[MatrixRow], title: str = "GPU use", frame: Frame | None = None) -> GpuMatrix:
    matrix = GpuMatrix()
    matrix.set_data(rows, replace(frame or Frame(), title=title))
    return matrix


async def test_heights_carry_the_values() -> None:
    matrix = matrix_of([])
    async with WidgetApp(matrix).run_test(size=(40, 6)):
        assert any("no GPU data" in line for line in shown(matrix))
        matrix.set_data([row(0, 0.0, 0.5, 1.0, None), row(1, 0.6, 0.6, 0.6, 0.6, note="▲ slow")])
        assert shown(matrix)[:3] == [
            "GPU use              0 1 2 3",
            "node-0  50 %         ▁ ▅ ▇ ·",
            "node-1  60 % ▲ slow  ▅ ▅ ▅ ▅",
        ]


async def test_keys_and_mouse_pick_nodes() -> None:
    matrix = matrix_of(cluster(10), "GPU")
    app = MatrixApp(matrix)
    async with app.run_test(size=(60, 11)) as pilot:
        matrix.focus()
        await pilot.press("j", "j", "enter")
        await pilot.click(matrix, offset=(3, 5))
        await pilot.press("G", "enter")
        await pilot.pause()
        assert shown(matrix)[-1].startswith("node-9")
        assert shown(matrix)[0].startswith("GPU")
        await pilot.press("g", "enter")
        await pilot.pause()
        assert app.picked == ["node-2", "node-4", "node-9", "node-0"]
        assert shown(matrix)[1].startswith("node-0")


async def test_64_nodes_of_8_fit_and_their_cursor_goes_both_ways() -> None:
    nodes = cluster(64)
    nodes[17] = MatrixRow("node-17", "▲ slow", (0.3,) * 7 + (None,), 0.3, facts=("12",))
    matrix = matrix_of(nodes, frame=Frame(facts=("cores",)))
    app = MatrixApp(matrix)
    async with app.run_test(size=(44, 10)) as pilot:
        app.set_focus(None)
        await pilot.pause()
        lines = shown(matrix)
        assert lines[0] == "GPU use 96 %  ▲1  low 30 % node-17"
        assert lines[1].split() == ["0", *["⣿⣿⣿⣿"] * 8]
        assert lines[3].split() == ["16", "⣿⣿⣿⣿", "⣤⣤⣤⡄▲⣿⣿⣿⣿", *["⣿⣿⣿⣿"] * 5]
        assert [line.split()[0] for line in lines[1:9]] == [str(first) for first in range(0, 64, 8)]
        assert lines[9] == "node-17 30 % ▲ slow  cores 12"
        matrix.focus()
        await pilot.press("j", "l", "l", "k", "enter", "G", "enter")
        await pilot.click(matrix, offset=(3 + 5 * 5, 8))
        await pilot.pause()
        assert app.picked == ["node-2", "node-63", "node-61"]


async def test_a_row_over_time_shows_the_lowest_of_each_moment() -> None:
    times = tuple(float(second) for second in range(100))
    dip = Series("node-0", times, tuple(0.0 if second == 42 else 1.0 for second in range(100)))
    gap = Series("node-1", times, tuple(math.nan if second < 50 else 0.5 for second in range(100)))
    rows = [
        MatrixRow("node-0", "", (1.0,), 1.0, dip, ("30", "559 GiB")),
        MatrixRow("node-1", "", (0.5,), 0.5, gap, ("31", "1 GiB")),
    ]
    matrix = matrix_of(rows, frame=HISTORY)
    async with WidgetApp(matrix).run_test(size=(60, 6)) as pilot:
        await pilot.pause()
        head, first, second, *_, axis = shown(matrix)
    assert head.endswith("cores   memory")
    assert first.endswith("30  559 GiB")
    cells = first.split()[3]
    assert cells.count("▁") == 1 and set(cells) == {"▁", "▇"}
    assert set(second.split()[3]) == {"·", "▅"}
    assert axis.split() == ["-1m40s", "now"]


async def test_a_scroll_bar_hides_nothing() -> None:
    rows = [replace(one, facts=("30", "559 GiB")) for one in cluster(20)]
    matrix = matrix_of(rows, frame=HISTORY)
    async with WidgetApp(matrix).run_test(size=(60, 9)) as pilot:
        await pilot.pause()
        assert matrix.show_vertical_scrollbar
        seen = matrix.scrollable_content_region.width
        lines = [line[:seen] for line in full_lines(matrix)[:8]]
    assert lines[0].rstrip().endswith("memory")
    assert all(line.rstrip().endswith("559 GiB") for line in lines[1:])


async def test_long_names_are_told_apart_and_leave_the_sign_its_place() -> None:
    long = "baseten-training-job-lqz4o0q-multinode-{}"
    nodes = [replace(one, name=long.format(rank)) for rank, one in enumerate(cluster(4))]
    nodes[2] = replace(nodes[2], label_note="▲ slow")
    matrix = matrix_of(nodes)
    async with WidgetApp(matrix).run_test(size=(31, 6)) as pilot:
        await pilot.pause()
        lines = shown(matrix)
    assert [line.split()[0] for line in lines[1:5]] == ["…node-0", "…node-1", "…node-2", "…node-3"]
    assert [("▲" in line) for line in lines[1:5]] == [False, False, True, False]
