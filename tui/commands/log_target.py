"""Where ``bt-tui logs`` writes, and in which format.

``-o/--output`` says either: ``text``, ``ndjson`` and ``raw`` are formats; a value with a dot or a slash in
it is a file (``run.log``, ``./log``), whose ending chooses the format unless one is given too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.options import NDJSON, TEXT
from tui.commands.output import Output, cannot_write

RAW = "raw"
FORMATS = (TEXT, NDJSON, RAW)
FORMAT_OF_SUFFIX = {".ndjson": NDJSON, ".jsonl": NDJSON, ".raw": RAW}


@dataclass(frozen=True, slots=True)
class Target:
    """A format, and the file to write to (None: stdout)."""

    format: str
    file: Path | None = None
    replaces: bool = False


def target_of(outputs: Sequence[str], save: str | None, *, force: bool) -> Target:
    """What the values of ``-o`` and ``--save`` mean together. Raises click.BadParameter."""
    formats = list(dict.fromkeys(value for value in outputs if value in FORMATS))
    files = list(
        dict.fromkeys([*(value for value in outputs if value not in FORMATS), *filter(None, [save])])
    )
    for value in files:
        if value != save and not any(sign in value for sign in "./\\~"):
            raise click.BadParameter(
                f"{value!r} is no format ({', '.join(FORMATS)}); for a file of that name: ./{value}",
                param_hint="-o/--output",
            )
    if len(formats) > 1 or len(files) > 1:
        raise click.BadParameter("one format and one file at most", param_hint="-o/--output")
    file = Path(files[0]).expanduser() if files else None
    suffix_format = FORMAT_OF_SUFFIX.get(file.suffix.lower(), TEXT) if file else TEXT
    return Target(formats[0] if formats else suffix_format, file, force)


@contextmanager
def opened(target: Target, output: Output) -> Iterator[Output]:
    """Where the data goes: ``output`` itself, or one that writes to the file. Raises CommandFailed."""
    if target.file is None:
        yield output
        return
    try:
        how: Literal["w", "x"] = "w" if target.replaces else "x"
        handle = target.file.open(how, encoding="utf-8", errors="replace", newline="\n")
    except FileExistsError:
        message = f"{target.file} is there already; --force replaces it"
        raise CommandFailed(message, ExitCode.USAGE) from None
    except OSError as error:
        raise CommandFailed(f"cannot write {target.file}: {error.strerror}", ExitCode.USAGE) from None
    try:
        with handle:
            yield Output(stdout=handle)
    except OSError as error:  # what could not be written is tried again as the file is closed
        raise cannot_write(target.file, error) from None
