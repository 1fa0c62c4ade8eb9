"""The reference and the file that people begin with are made from the model, and stay true to it."""

import tomllib
from pathlib import Path

from textual.theme import BUILTIN_THEMES

from tui.app.theme import THEMES
from tui.settings.loading import check_file, load
from tui.settings.model import Configuration, ThemeSettings
from tui.settings.reference import entries, template
from tui.widgets.log_view.gutter import TIME_MODES


def test_a_new_file_is_valid_and_says_what_each_setting_does_and_its_default(tmp_path: Path) -> None:
    assert [entry.name for entry in entries() if not entry.text] == []
    file = tmp_path / "config.toml"
    file.write_text(template())
    assert check_file(file) == []
    assert all(not values for values in tomllib.loads(template()).values())
    lines = []
    for line in template().splitlines():
        name, _, value = line.removeprefix("# ").partition(" = ")
        is_setting = line.startswith("# ") and value and name.isidentifier() and value != '"…"'
        lines.append(line.removeprefix("# ") if is_setting or line == "# [[patterns]]" else line)
    file.write_text("\n".join(lines))
    assert check_file(file) == []
    shown = load({"BT_TUI_CONFIG": str(file)}).configuration
    assert shown.model_copy(update={"patterns": []}) == Configuration()
    assert len(shown.patterns) == 1


def test_names_that_are_spelt_out_are_those_of_textual_and_of_the_screens() -> None:
    names = ThemeSettings.model_json_schema()["properties"]["name"]["enum"]
    assert names == [theme.name for theme in THEMES] + list(BUILTIN_THEMES)
    times = Configuration.model_json_schema()["$defs"]["LogSettings"]["properties"]["time"]["enum"]
    assert tuple(times) == TIME_MODES
