"""``bt-tui emulator`` as a person uses it: start it, paste its lines, use it, end it."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.cli import RunCli

LIMIT_S = 60
Start = Callable[..., subprocess.Popen[str]]


def read_exports(process: subprocess.Popen[str], shell_environ: dict[str, str]) -> dict[str, str]:
    """What a shell knows after the printed lines were pasted into it."""
    lines = "".join(process.stdout.readline() for _line in range(3))
    names = re.findall(r"^export (\w+)=", lines, re.MULTILINE)
    script = lines + "".join(f'printf "%s\\n" "${name}"\n' for name in names)
    printed = subprocess.check_output(
        ["/bin/sh", "-c", script], env=shell_environ, text=True, timeout=LIMIT_S
    )
    return dict(zip(names, printed.splitlines(), strict=True))


def test_serve_use_and_end(cli: RunCli, cli_process: Start, clean_environ: Any, tmp_path: Path) -> None:
    arguments = ("emulator", "--world", "empty", "--port", "0", "--data", str(tmp_path / "a folder"))
    with cli_process(*arguments, environ={}) as process:
        exports = read_exports(process, clean_environ)
        listed = cli("projects -o json", environ=exports)
        refused = cli(*arguments, environ={})
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert set(exports) == {"BASETEN_API_KEY", "BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"}
    assert (listed.code, listed.json, process.returncode) == (0, [], 0)
    assert (refused.code, "another emulator is already using" in refused.err) == (1, True)
    assert exports["BASETEN_API_KEY"] not in out + err
    assert "unsandboxed" in err
