"""Where ``bt-tui logs`` writes, and in which format.

``-o/--output`` says either: ``text``, ``ndjson``, ``json`` and ``raw`` are formats; a value with a dot or a
slash in it is a file (``run.log``, ``./log``), whose ending chooses the format unless one is given too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

import click

from api_client.files import AtomicFile
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.options import JSON, NDJSON, TEXT
from tui.commands.output import Output, cannot_write

RAW = "raw"
FORMATS = (TEXT, NDJSON, JSON, RAW)
PARTIAL_SUFFIX = ".part"
FORMAT_OF_SUFFIX = {".json": JSON, ".ndjson": NDJSON, ".jsonl": NDJSON, ".raw": RAW}


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
                f"unknown format {value!r}; use {', '.join(FORMATS)}, or ./{value} for a file",
                param_hint="-o/--output",
            )
    if len(formats) > 1 or len(files) > 1:
        raise click.BadParameter("one format and one file at most", param_hint="-o/--output")
    file = Path(os.path.expanduser(files[0])) if files else None  # noqa: PTH111 - does not raise for ~nobody
    suffix_format = FORMAT_OF_SUFFIX.get(file.suffix.lower(), TEXT) if file else TEXT
    return Target(formats[0] if formats else suffix_format, file, force)


@contextmanager
def opened(target: Target, output: Output, *, follows: bool) -> Iterator[Output]:
    """Yield where the data goes: ``output`` itself, or one that writes to the file. Raises CommandFailed.

    The file appears under its name when it is complete. What is followed may take days and be cut off, so
    until then it is kept under a name that says so, where it can be read meanwhile.
    """
    if target.file is None:
        yield output.verbatim() if target.format == RAW else output
        return
    partial = target.file.with_name(f"{target.file.name}{PARTIAL_SUFFIX}") if follows else None
    try:
        saved = AtomicFile(target.file, replace=target.replaces, partial=partial)
    except FileExistsError as error:
        why = " from a follow that was cut off" if error.filename == str(partial) else ""
        message = f"{error.filename} exists already{why}; --force replaces it"
        raise CommandFailed(message, ExitCode.USAGE) from None
    except OSError as error:
        raise cannot_write(target.file, error) from None
    try:
        text = TextIOWrapper(saved.file, encoding="utf-8", errors="replace", newline="\n")
        yield Output(stdout=text, name=str(target.file), verbatim=target.format == RAW)
        saved.commit()
    except OSError as error:
        raise cannot_write(target.file, error) from None
    finally:
        saved.discard()
        if partial is not None and partial.exists():
            output.remark(f"what arrived is in {partial}")
