"""The generated parts of the documentation match the code, and the health page leaves nothing out."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from generated import DOCUMENTS, PAGES, THRESHOLDS

from tui.analysis.run.finding import FindingKind
from tui.settings.reference import entries

HEALTH = (DOCUMENTS / "health.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.proves("docs/configuration.md", "Configuration")
@pytest.mark.proves("docs/keys.md", "Keys")
@pytest.mark.proves("docs/health.md", "Progress: supported trainers")
def test_generated_parts_match_the_code(name: str) -> None:
    """CONTRIBUTING.md has the command that rewrites them."""
    page = (DOCUMENTS / name).read_text(encoding="utf-8")
    assert PAGES[name](page) == page


@pytest.mark.parametrize("script", ["generated.py", "pictures.py"])
def test_the_commands_that_generate_find_what_they_import(script: str) -> None:
    contributing = (DOCUMENTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (path,) = re.findall(rf"PYTHONPATH=(\S+) \.venv/bin/python tests/docs/{script}", contributing)
    loads = f"import runpy; runpy.run_path('tests/docs/{script}')"
    environ = os.environ | {"PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", loads], cwd=DOCUMENTS.parent, env=environ, check=True)


@pytest.mark.proves("README.md", "Is it healthy, how fast is it, which node is slow?")
def test_every_kind_of_finding_is_on_the_health_page() -> None:
    assert [kind for kind in FindingKind if f"`{kind}`" not in HEALTH] == []


def test_every_threshold_belongs_to_one_finding_and_is_shown() -> None:
    keys = [entry.key for entry in entries() if entry.section == "health"]
    owners = {key: [kind for kind, names in THRESHOLDS.items() if key.startswith(names)] for key in keys}
    assert {key: kinds for key, kinds in owners.items() if len(kinds) != 1} == {}
    assert re.findall(r"<!-- thresholds: ([\w-]+) -->", HEALTH) == list(map(str, THRESHOLDS))
