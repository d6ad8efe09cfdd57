"""What the kernel says of the tasks, beside what trained transformers needed."""

from __future__ import annotations

from bindscope.studies.results import Result

RESULTS: tuple[Result, ...] = ()
