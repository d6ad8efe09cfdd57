"""What a pretrained GPT-2 and one from scratch made of a task."""

from __future__ import annotations

from bindscope.studies.results import Result

RESULTS: tuple[Result, ...] = ()
