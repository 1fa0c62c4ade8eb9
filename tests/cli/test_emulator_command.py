"""``bt-tui emulator`` as a person uses it: start it, paste its lines, use it, end it."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from support.cli import RunCli

LIMIT_S = 60


def read_exports(process: subprocess.Popen[str], shell_environ: dict[str, str]) -> dict[str, str]:
    """What a shell knows after the printed lines were pasted into it."""
    lines = "".join(process.stdout.readline() for _line in range(3))
    names = re.findall(r"^export (\w+)=", lines, re.MULTILINE)
    script = lines + "".join(f'printf "%s\\n" "${name}"\n' for name in names)
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env=shell_environ,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return dict(zip(names, done.stdout.splitlines(), strict=True))


def test_serve_use_and_end(
    cli: RunCli,
    cli_process: Callable[..., subprocess.Popen[str]],
    clean_environ: dict[str, str],
    tmp_path: Path,
) -> None:
    arguments = ("emulator", "--world", "empty", "--port", "0", "--data", str(tmp_path / "a folder"))
    with cli_process(*arguments, environ={}) as process:
        exports = read_exports(process, clean_environ)
        listed = cli("projects -o json", environ=exports)
        refused = cli(*arguments, environ={})
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert set(exports) == {"BASETEN_API_KEY", "BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"}
    assert (listed.code, listed.json) == (0, [])
    assert refused.code == 1
    assert "another emulator is already using" in refused.err
    assert process.returncode == 0
    assert exports["BASETEN_API_KEY"] not in out + err
    assert "unsandboxed" in err
