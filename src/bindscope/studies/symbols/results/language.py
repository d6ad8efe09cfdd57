"""Perplexities with and without identity scaling."""

from __future__ import annotations

from bindscope.studies.results import Result

RESULTS: tuple[Result, ...] = ()
