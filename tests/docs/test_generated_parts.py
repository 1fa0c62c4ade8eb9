"""The generated parts of the documentation match the code, and the health page leaves nothing out."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from generated import DOCUMENTS, PAGES


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.proves("docs/keys.md", "Keys")
@pytest.mark.proves("docs/health.md", "Progress: supported trainers")
def test_generated_parts_match_the_code(name: str) -> None:
    page = (DOCUMENTS / name).read_text(encoding="utf-8")
    assert PAGES[name](page) == page, "run PYTHONPATH=.:tests .venv/bin/python tests/docs/generated.py"


@pytest.mark.parametrize("script", ["generated.py", "pictures.py"])
def test_the_commands_that_generate_find_what_they_import(script: str) -> None:
    contributing = (DOCUMENTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (path,) = re.findall(rf"PYTHONPATH=(\S+) \.venv/bin/python tests/docs/{script}", contributing)
    loads = f"import runpy; runpy.run_path('tests/docs/{script}')"
    environ = os.environ | {"PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", loads], cwd=DOCUMENTS.parent, env=environ, check=True)
