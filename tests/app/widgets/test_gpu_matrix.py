"""The matrix picks nodes by key and mouse, also where each row has eight of them."""

from __future__ import annotations

from widget_text import WidgetApp, shown

from support.waiting import until
from tui.widgets.gpu_matrix import Frame, GpuMatrix, MatrixRow


class MatrixApp(WidgetApp):
    """Shows these nodes and keeps the names that were picked."""

    def __init__(self, rows: list[MatrixRow], frame: Frame) -> None:
        self.matrix, self.picked = GpuMatrix(), list[str]()
        self.matrix.set_data(rows, frame)
        super().__init__(self.matrix)

    def on_gpu_matrix_node_selected(self, message: GpuMatrix.NodeSelected) -> None:
        self.picked.append(message.name)


def cluster(count: int) -> list[MatrixRow]:
    return [MatrixRow(f"node-{number}", "", (0.97,) * 8, 0.97) for number in range(count)]


async def test_keys_and_mouse_pick_nodes() -> None:
    app = MatrixApp(cluster(10), Frame(title="GPU"))
    async with app.run_test(size=(60, 11)) as pilot:
        app.matrix.focus()
        await pilot.press("j", "j", "enter")
        await pilot.click(app.matrix, offset=(3, 5))
        await pilot.press("G", "enter")
        await pilot.pause()
        assert shown(app.matrix)[-1].startswith("node-9")
        await pilot.press("g", "enter")
        await pilot.pause()
        assert app.picked == ["node-2", "node-4", "node-9", "node-0"]
        assert shown(app.matrix)[1].startswith("node-0")


async def test_64_nodes_of_8_fit_and_their_cursor_goes_both_ways() -> None:
    nodes = cluster(64)
    nodes[17] = MatrixRow("node-17", "▲ slow", (0.3,) * 7 + (None,), 0.3, facts=("12",))
    app = MatrixApp(nodes, Frame(title="GPU use", facts=("cores",)))
    async with app.run_test(size=(44, 10)) as pilot:
        lines = shown(app.matrix)
        assert lines[0] == "GPU use 96%  ▲1  low 30% node-17"
        assert lines[3].split() == ["16", "⣿⣿⣿⣿", "⣤⣤⣤⡄▲⣿⣿⣿⣿", *["⣿⣿⣿⣿"] * 5]
        app.matrix.focus()
        await pilot.press("j", "l", "l", "k", "enter", "G", "enter")
        await pilot.click(app.matrix, offset=(3 + 5 * 5, 8))
        await pilot.pause()
        assert app.picked == ["node-2", "node-63", "node-61"]


async def test_idle_gpus_of_an_ended_run_have_the_color_of_busy_ones() -> None:
    nodes = [*cluster(1), MatrixRow("node-1", "", (0.1,) * 8, 0.1)]
    for live, colors in ((True, 2), (False, 1)):
        app = MatrixApp(nodes, Frame(is_live=live))
        async with app.run_test(size=(40, 6)):
            drawn = [cell for y in (1, 2) for cell in app.matrix.render_line(y)]
            cells = [cell for cell in drawn if cell.text.strip() in ("▁", "▇")]
            assert len(cells) == 16
            assert len({cell.style.color for cell in cells if cell.style}) == colors


async def test_gpus_close_to_the_mean_of_their_node_have_one_color() -> None:
    app = MatrixApp([MatrixRow("node-0", "", (0.59, 0.61, 0.6, 0.1), 0.6)], Frame())
    async with app.run_test(size=(40, 6)):
        colors = [
            cell.style.color for cell in app.matrix.render_line(1) if cell.style and cell.text[0] in "▁▅"
        ]
        assert len(colors) == 4 and len({*colors[:3]}) == 1 != len({*colors})


async def test_summary_of_many_nodes_leaves_out_a_fact_rather_than_cut_it() -> None:
    app = MatrixApp(cluster(40), Frame(title="GPU use"))
    async with app.run_test(size=(30, 8)) as pilot:
        assert shown(app.matrix)[0] == "GPU use 97%  low 97% node-0"
        await pilot.resize_terminal(24, 8)
        await until(pilot, lambda: shown(app.matrix)[0].rstrip() == "GPU use 97%")
