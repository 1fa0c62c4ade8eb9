"""The matrix shows every GPU of every node, and picks nodes by key and mouse."""

from __future__ import annotations

import pytest
from textual.geometry import Region
from widget_text import WidgetApp, full_lines, shown

from tui.widgets.gpu_matrix import GpuMatrix, MatrixRow


class MatrixApp(WidgetApp):
    """Keeps the names that were picked."""

    def __init__(self, widget: GpuMatrix) -> None:
        super().__init__(widget)
        self.picked: list[str] = []

    def on_gpu_matrix_node_selected(self, message: GpuMatrix.NodeSelected) -> None:
        self.picked.append(message.name)


def row(number: int, *values: float | None, note: str = "") -> MatrixRow:
    known = [value for value in values if value is not None]
    return MatrixRow(f"node-{number}", note, values, sum(known) / len(known) if known else None)


def cluster(count: int) -> list[MatrixRow]:
    return [row(number, *(0.97 for _ in range(8))) for number in range(count)]


async def test_heights_carry_the_values() -> None:
    matrix = GpuMatrix("GPU utilisation")
    matrix.set_data([row(0, 0.0, 0.5, 1.0, None), row(1, 0.6, 0.6, 0.6, 0.6, note="▲ slow")])
    async with WidgetApp(matrix).run_test(size=(60, 6)):
        assert shown(matrix)[:3] == [
            "GPU utilisation      0 1 2 3",
            "node-0  50 %         ▁ ▅ ▇ ·",
            "node-1  60 % ▲ slow  ▅ ▅ ▅ ▅",
        ]


async def test_no_node_has_its_own_look() -> None:
    matrix = GpuMatrix("GPU", empty_text="no GPU data yet")
    async with WidgetApp(matrix).run_test(size=(40, 8)):
        assert any("no GPU data yet" in line for line in shown(matrix))


async def test_only_changed_nodes_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = GpuMatrix("GPU")
    matrix.set_data(cluster(8))
    async with WidgetApp(matrix).run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        painted: list[tuple[Region, ...]] = []
        monkeypatch.setattr(matrix, "refresh", lambda *regions, **_: painted.append(regions))
        matrix.set_data(cluster(8))
        assert painted == []
        changed = cluster(8)
        changed[3] = row(3, *(0.5 for _ in range(8)))
        matrix.set_data(changed)
        assert painted == [(Region(0, 4, 60, 1),)]


async def test_keys_and_mouse_pick_nodes() -> None:
    matrix = GpuMatrix("GPU")
    matrix.set_data(cluster(40))
    app = MatrixApp(matrix)
    async with app.run_test(size=(60, 11)) as pilot:
        matrix.focus()
        await pilot.press("j", "j", "enter")
        await pilot.click(matrix, offset=(3, 5))
        await pilot.press("G", "enter")
        await pilot.pause()
        assert shown(matrix)[-1].startswith("node-39")
        assert shown(matrix)[0].startswith("GPU")
        await pilot.press("g", "enter")
        await pilot.pause()
        assert app.picked == ["node-2", "node-4", "node-39", "node-0"]
        assert shown(matrix)[1].startswith("node-0")


async def test_the_cursor_stays_on_its_node() -> None:
    matrix = GpuMatrix("GPU")
    matrix.set_data(cluster(4))
    async with WidgetApp(matrix).run_test(size=(60, 11)) as pilot:
        matrix.focus()
        await pilot.press("j", "j")
        matrix.set_data(list(reversed(cluster(6))))
        assert matrix.selected == "node-2"
        matrix.set_data(cluster(2))
        assert matrix.selected == "node-0"


@pytest.mark.parametrize("size", [(60, 20), (36, 5), (24, 3), (12, 2), (5, 2)])
async def test_lines_fit_any_size_and_names_are_inert(size: tuple[int, int]) -> None:
    matrix = GpuMatrix("GPU \x1b[31m utilisation")
    matrix.set_data([MatrixRow("\x1b[2Jevil\n日本", "▲ slow", (0.5,) * 8, 0.5), *cluster(3)])
    async with WidgetApp(matrix).run_test(size=size):
        for line in full_lines(matrix):
            assert line.isprintable()
