"""Recordings: a run in one file, which other programs can read and write (``docs/recordings.md``)."""
