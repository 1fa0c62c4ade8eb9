"""What trainers print about their progress: one module for each family of lines, tried in turn.

A family module offers ``read(text) -> Reading | None``. ``parse`` is the only door.
"""

from tui.insight.progress_patterns.own import ProgressPattern
from tui.insight.progress_patterns.parse import parse
from tui.insight.progress_patterns.reading import Reading

__all__ = ["ProgressPattern", "Reading", "parse"]
