"""The experiments of study 3 as results: curves over n and over width."""

from __future__ import annotations

from bindscope.studies.results import Result

RESULTS: tuple[Result, ...] = ()
