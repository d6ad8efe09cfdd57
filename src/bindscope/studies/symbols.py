"""Study 3, reasoning with abstract symbols (arXiv 2310.09753): its presets."""

from __future__ import annotations

from bindscope.studies.preset import Preset

PRESETS: tuple[Preset, ...] = ()
