"""Break what must not break, one rule at a time, and see that the suite notices: ``make mutants``.

    python tests/mutants.py [NAME …] [--list]

In a temporary copy of the working tree each mutant replaces one line of the source by a wrong one and runs
the fast tests that are about that rule (the whole suite would take hours). A mutant that those tests let
pass has survived: the exit code is 1 then, and a test is missing. The tests run unbroken first, as they
could not accuse a mutant otherwise. A line that is no longer there as it is written here is an error too
(exit code 2): the rule has moved, and its mutant has to follow.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("api_client", "tui", "tests", "docs", "pyproject.toml", "README.md", "SECURITY.md")
LIMIT_S = 240.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """``right``, which is there once in ``file``, becomes ``wrong``; one of ``tests`` must fail then."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


TABLE = r"""
tests/unit/streams/test_log_properties.py::test_as_many_of_each_line_are_told_as_one_read_has_brought_most
dedupe: of identical new lines one is told at a time @ api_client/streams/deduplicator.py
-            missing[fingerprint] -= 1
+            missing[fingerprint] = 0
dedupe: a set instead of a multiset @ api_client/streams/deduplicator.py
-                missing = Counter(line_hashes)
+                missing = Counter(set(line_hashes))
dedupe: what is known comes again @ api_client/streams/deduplicator.py
-                missing.subtract(known)
+
tests/unit/streams/test_log_examples.py::test_a_millisecond_may_hold_more_than_a_page
seam: the last millisecond of a page is not read again @ api_client/streams/reader.py
-        return list(lines[:cut]), (last_ms, end_ms)
+        return list(lines), (last_ms + 1, end_ms)
seam: the same, backwards @ api_client/streams/reader.py
-        return list(lines[cut:]), (start_ms, first_ms + 1)
+        return list(lines), (start_ms, first_ms)
tests/unit/client/test_transport.py
retry: a creation is sent again though it may have arrived @ api_client/http/transport.py
-may_repeat=lambda error: repeatable or not call.arrived or isinstance(error, RateLimited),
+
redirect: the key follows to another host @ api_client/http/transport.py
- or _origin(target) != site.origin:
+:
tests/unit/transfers/test_download_names.py
containment: a name that leads out is given a place @ api_client/transfers/file_names.py
-    if any(piece in ("..", "..\\") or ".." in piece.split("\\") for piece in pieces):
+    if False:
tests/faults/test_download_faults.py
containment: a link among the folders is followed @ api_client/files.py
-            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
+            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
tests/hostile/test_hostile_archives.py
containment: a link of an archive may lead outside @ api_client/archives.py
-or ups > depth or ".." in parts[ups:]:
+or ups > depth:
tests/cli/test_written_files.py
containment: a new file may be somebody's link @ api_client/files.py
-_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
+_NEW_FILE = os.O_CREAT | os.O_CLOEXEC
tests/hostile/test_named_addresses.py
destinations: the address that a name leads to is not checked @ api_client/addresses.py
-            self._check(host, address)
+            self._check(host, host)
destinations: a transfer looks the name up again to connect @ api_client/transfers/network.py
-super().connect_tcp(address, port
+super().connect_tcp(host, port
tests/unit/client/test_transport_errors.py
redaction: a server that repeats the key is quoted @ api_client/http/failures.py
-        words = words.replace(key, "[key]")
+        pass
tests/unit/deployment/test_lora_ranks.py
rank: the smallest adapter decides @ api_client/servable.py
-    return max((rank for rank in map(_rank, values)
+    return min((rank for rank in map(_rank, values)
rank: one below the adapter's own is taken @ api_client/servable.py
-    if largest is not None and value < largest:
+    if False:
tests/contract/test_emulator_refusals.py
emulator: any Host is served @ api_client/emulator/app.py
-    if not is_local:
+    if False:
emulator: any site's page is served @ api_client/emulator/app.py
-    elif origin is not None and origin.lower() != f"http://{host}".lower():
+    elif False:
emulator: any key opens it @ api_client/emulator/app.py
-    elif not hmac.compare_digest(sent_key.strip().encode(errors="replace"), key.encode()):
+    elif False:
tests/contract/test_emulator_files.py
emulator: any signature opens an object @ api_client/emulator/presign.py
-        return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))
+        return True
tests/unit/analysis/test_text.py
text: escape sequences stay @ tui/text/sanitize.py
-    text = strip_ansi(text.rstrip("\r\n"))
+    return text
tests/hostile/test_crash.py
crash: the report has the messages of errors @ tui/app/crash.py
-    yield f"{_kind(error)}:"
+    yield f"{_kind(error)}: {error}"
tests/unit/client/test_readonly.py
read-only: changes are sent @ api_client/http/transport.py
-        if self._read_only_by and route.is_change:
+        if False:
read-only: what no route calls a change is a read @ api_client/routes.py
-        return self.method != "GET" if self.changes is None else self.changes
+        return bool(self.changes)
tests/unit/settings/test_configuration_loading.py
read-only: a mistake in the settings lifts it @ tui/settings/loading.py
-        if forbidden_by:
+        if False:
tests/unit/analysis/test_log_lines.py
belief: a count that falls is a training's @ tui/analysis/progress/lines/belief.py
-    return (second.at_ns - first.at_ns) * (after - before) > 0
+    return True
belief: sentences count like plain lines @ tui/analysis/progress/lines/belief.py
-        is_plain = not form.is_prose and measures_of(told.reading) > 0
+        is_plain = measures_of(told.reading) > 0
belief: a heading needs no values below it @ tui/analysis/progress/lines/belief.py
-        if block.is_confirmed and (self._trains or (has_risen and has_values)):
+        if block.is_confirmed and (self._trains or has_risen):
tests/unit/streams/test_log_examples.py
gap: what a full millisecond hides is not told @ api_client/streams/reader.py
-        return [*oldest, gap_with_lines(last, first, TOO_MANY, oldest), *newest]
+        return [*oldest, *newest]
gap: a range that the server refuses is left out @ api_client/streams/reader.py
-        self._record_gap(start_ms, end_ms, str(refused))
+        pass
gap: lines known before come again with what fills it @ api_client/streams/logs.py
-            if known[entry]:
+            if False:
late: a line that comes after its time is missed @ api_client/streams/logs.py
-min(newest_ms, now_ms) - LATENESS_MS)
+min(newest_ms, now_ms))
end: the lines after the job's end are not waited for @ api_client/streams/follow.py
-            if self._is_known_complete() or self._is_drained():
+            if self._job_poller.finished_job is not None:
tests/unit/client/test_transport.py tests/unit/client/test_retry_policy.py
retry: Retry-After is not obeyed @ api_client/http/retry.py
-error.retry_after_s is not None:
+False:
retry: what the server refuses is sent again @ api_client/http/retry.py
-            return self.refused_s
+            return 0.0 if attempt < 3 else None
tests/unit/client/test_remotes.py tests/unit/client/test_remotes_writing.py tests/cli/test_written_files.py
keys: a file with keys can be read by others @ api_client/files.py
-PRIVATE_FILE_MODE = 0o600
+PRIVATE_FILE_MODE = 0o644
keys: a damaged credentials file is quoted @ api_client/remotes/trussrc.py
-        problem = "it is not a well-formed INI file" + (
+        problem = str(error) + (
tests/unit/recordings/test_writing.py
keys: a recording holds what the log printed @ api_client/recordings/writing.py
-self._add(self._scrub_line(document))
+self._add(document)
keys: a recording holds what the job was sent @ api_client/recordings/writing.py
-(json.dumps(self._scrub.document(value)) + "\n").encode()
+(json.dumps(value) + "\n").encode()
tests/unit/transfers/test_part_file.py
download: bytes go where others are missing @ api_client/transfers/part_file.py
-memoryview(content if offset == self.done_bytes else b"")
+memoryview(content)
tests/faults/test_download_faults.py
download: another digest than the server's is taken @ api_client/transfers/download_run.py
-        if expected and await asyncio.to_thread(part.digest, algorithm) != expected:
+        if False:
download: parts of two versions make one file @ api_client/transfers/download_run.py
-            raise _ObjectChanged("the file was replaced")
+            pass
tests/unit/deployment/test_lora_ranks.py tests/unit/deployment/test_checkpoint_selection.py
rank: the smallest valid rank is suggested @ api_client/servable.py
-    fitting = next(rank for rank in LORA_RANKS if rank >= largest)
+    fitting = next(rank for rank in LORA_RANKS if rank > 0)
deploy: a checkpoint that is still uploading @ api_client/servable.py
-.strip().upper() == "SYNCING":
+.strip().upper() == "":
deploy: adapters of two base models together @ api_client/servable.py
-    if len(bases) > 1:
+    if False:
deploy: shards are taken for weights @ api_client/servable.py
-        if found == "shards":
+        if False:
tests/unit/analysis/test_health_rules.py tests/unit/analysis/test_verdict.py
findings: stalled is told before the log was read @ tui/analysis/health/judge.py
-    if not run.log_read:
+    if False:
findings: healthy before the log and the metrics were read @ tui/analysis/health/judge.py
-    checked = frozenset(part for part, is_read in parts if is_read)
+    checked = frozenset(part for part, is_read in parts)
findings: they come and go at a threshold @ tui/analysis/health/watched.py
-        return threshold + (healthy - threshold) * self.rules.release if held else threshold
+        return threshold
findings: a missing node is slow, too @ tui/analysis/health/check.py
-if each.node not in causes]
+]
findings: GPUs that wait for the model to load are idle @ tui/analysis/health/checks/gpu_idle.py
-        allowed_s = limits.idle_never_s
+        allowed_s = limits.idle_after_s
findings: a single NaN is a broken loss @ tui/analysis/health/checks/loss.py
-broken > 2 or
+broken > 0 or
findings: a node that logs is missing @ tui/analysis/health/checks/missing.py
-        if silence.log_state == "silent":
+        if silence.log_state != "unknown":
findings: a restarted run is compared with itself before @ tui/analysis/health/windows.py
-    return series if first == 0 else Series(series.name, series.times[first:], series.values[first:])
+    return series
"""
"""The tests of those below, and of each mutant its name, its file, the right line and the wrong one."""


def _parsed(table: str) -> Iterator[Mutant]:
    name = file = right = ""
    tests: tuple[str, ...] = ()
    for line in table.strip("\n").split("\n"):
        if line.startswith("tests/"):
            tests = tuple(line.split())
        elif line.startswith("-"):
            right = line[1:]
        elif line.startswith("+"):
            yield Mutant(name, file, right, line[1:], tests)
        else:
            name, _, file = line.partition(" @ ")


MUTANTS = tuple(_parsed(TABLE))


class Moved(Exception):
    """A line to break is not there, or not once."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants whose names hold one of the words given, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="NAME", help="only mutants with this in their name")
    parser.add_argument("--list", action="store_true", help="print their names, and check their lines")
    given = parser.parse_args(arguments)
    chosen = [one for one in MUTANTS if not given.words or any(word in one.name for word in given.words)]
    try:
        for one in chosen:
            _broken(ROOT, one)
    except Moved as moved:
        print(moved, file=sys.stderr)
        return 2
    if given.list:
        print("\n".join(one.name for one in chosen))
        return 0
    with tempfile.TemporaryDirectory(prefix="bt-tui-mutants-") as folder:
        return _try_all(Path(folder), chosen)


def _try_all(copy: Path, chosen: Sequence[Mutant]) -> int:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy / name)
    for tests in dict.fromkeys(one.tests for one in chosen):
        failure = _first_failure(copy, tests)
        if failure is not None:
            print(f"{failure} fails without any mutant: mend that first", file=sys.stderr)
            return 2
    survivors = 0
    width = max(len(one.name) for one in chosen)
    for one in chosen:
        path = copy / one.file
        right = path.read_text(encoding="utf-8")
        path.write_text(_broken(copy, one), encoding="utf-8")
        began_s = time.monotonic()
        failure = _first_failure(copy, one.tests)
        path.write_text(right, encoding="utf-8")
        survivors += failure is None
        verdict = "SURVIVED" if failure is None else "caught"
        print(
            f"{one.name:<{width}}  {verdict:<8}  {time.monotonic() - began_s:5.1f} s  {failure or ''}",
            flush=True,
        )
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


def _broken(root: Path, mutant: Mutant) -> str:
    """The file's text with the mutant in it. Raises Moved."""
    text = (root / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.right) != 1:
        times = text.count(mutant.right)
        raise Moved(f"{mutant.name}: in {mutant.file} this is there {times} times: {mutant.right.strip()}")
    return text.replace(mutant.right, mutant.wrong)


def _first_failure(copy: Path, tests: Sequence[str]) -> str | None:
    """The name of a test that fails, None if all pass; one that never ends has failed."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "--no-header")
    command = [sys.executable, "-B", "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, timeout=LIMIT_S, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return "(it never ended)"
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition(" - ")[0].rpartition("::")[2] if failed else done.stdout[-200:]


if __name__ == "__main__":
    sys.exit(main())
