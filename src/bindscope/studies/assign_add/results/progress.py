"""Results: progress."""

from __future__ import annotations

from bindscope.studies.results import Result

RESULTS: tuple[Result, ...] = ()
