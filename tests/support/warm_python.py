"""Python programs as copies of one process that has imported the product: they start in 20 ms, not in 500.

A copy has its own session, streams, folder and environment, and it ends as a process does: by a signal, with
its exit handlers, after its threads (``test_warm_python`` compares both). It cannot show what comes before
the first line of a program: what is imported when, options of the interpreter, ``PYTHON*`` variables, the
locale, closed streams, and what /proc tells of the start. Tests of those start an interpreter, and
``test_as_process`` does so for each command.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
IMPORTED = ("api_client", "tui")
NOT_COPIED = {"COVERAGE_PROCESS_START", "LC_ALL", "PYTHONUTF8", "PYTHONWARNINGS"}
"""A program with one of these is started by the interpreter itself, as is one of another interpreter."""


class WarmPython(subprocess.Popen[Any]):
    """A ``Popen`` of Python, which has ``-P`` as its only option, that is a copy of the warm process."""

    _end: int | None = None
    """Where the copy's number is written, and then how it ended."""

    def _execute_child(self, args: Any, *details: Any) -> None:  # type: ignore[override]
        folder, environ, pipes = details[4], details[5], details[9:15]  # in Python 3.11 to 3.14
        environ = dict(os.environ if environ is None else environ)
        if args[0] != sys.executable or NOT_COPIED & environ.keys():
            super()._execute_child(args, *details)  # type: ignore[misc]
            return
        task = {"arguments": args[1:], "folder": os.fspath(folder or Path.cwd()), "environ": environ}
        streams = (number if pipe < 0 else pipe for number, pipe in enumerate(pipes[::3] + pipes[5:]))
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_warm_process(), [b"."], [theirs.fileno(), *streams])
        ours.sendall(json.dumps(task).encode())
        ours.shutdown(socket.SHUT_WR)
        self._end = ours.detach()
        self.pid = _number(self._end)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._end is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc,no-any-return]
        if wait_flags and not select.select([self._end], [], [], 0)[0]:
            return 0, 0
        status = _number(self._end)
        os.close(self._end)
        return self.pid, status

    def _internal_poll(self, *details: Any, **more: Any) -> int | None:
        if self._end is None:
            return super()._internal_poll(*details, **more)  # type: ignore[misc,no-any-return]
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def _number(descriptor: int) -> int:
    return int(struct.unpack("i", os.read(descriptor, 4))[0])


@cache
def _warm_process() -> socket.socket:
    """Our end of its standard input: it ends when this process does, or when that is closed."""
    ours, theirs = socket.socketpair()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    command = [sys.executable, "-m", "support.warm_python"]
    with theirs:
        process = subprocess.Popen(command, stdin=theirs, cwd=ROOT, env=environ, start_new_session=True)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve() -> None:
    """Copy this process for each request, until nobody can ask for one any more."""
    from tui.cli import main  # what it keeps from being imported must not be imported before

    with redirect_stdout(io.StringIO()):
        main(["--version"])
    for package in map(importlib.import_module, IMPORTED):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "templates" not in module.name and not module.name.endswith("__main__"):
                with suppress(ImportError):  # an extra that is not installed
                    importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    requests = socket.socket(fileno=0)
    while descriptors := socket.recv_fds(requests, 1, 4)[1]:
        if os.fork() == 0:
            requests.close()
            _start(*descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _start(connection: int, *streams: int) -> None:
    """Run a program in another copy, and report its number and how it ended."""
    with socket.socket(fileno=connection) as asked:
        task = json.load(asked.makefile())
        # A signal during the copying would be lost: Python ignores what is raised by its hooks there.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        if program := os.fork():
            for stream in streams:
                os.close(stream)
            asked.sendall(struct.pack("i", program))
            asked.sendall(struct.pack("i", os.waitpid(program, 0)[1]))
            os._exit(0)
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(task["folder"])
    os.environ.clear()
    os.environ.update(task["environ"])
    time.tzset()
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    errors = errors or ("strict" if encoding else sys.stdin.errors)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        binary = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
        stream = io.TextIOWrapper(
            binary,
            encoding or "utf-8",
            "backslashreplace" if name == "stderr" else errors,
            line_buffering=name == "stderr" or binary.isatty(),
        )
        binary.raw.name = f"<{name}>"
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _run(*task["arguments"])
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        # As at the end of the interpreter, except that it takes all modules apart first, for 50 ms.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)


def _run(*command: str) -> None:
    is_safe = command[0] == "-P"
    option, *arguments = command[is_safe:]
    program = arguments.pop(0) if option in ("-c", "-m") else option
    folder = {"-c": "", "-m": str(Path.cwd())}.get(option, str(Path(program).parent))
    places = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [*([] if is_safe else [folder]), *places, *sys.path[3:]]
    sys.argv[:] = [option, *arguments]
    if option == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _serve()
