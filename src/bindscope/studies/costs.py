"""What training each preset was measured to take, by ``bindscope presets NAME --measure --threads N`` on a quiet machine."""

from __future__ import annotations

from bindscope.studies.preset import Cost

MEASURED: dict[str, Cost] = {}
