"""Results about how a run learned: its evaluations over the nine pools."""

from __future__ import annotations

from bindscope.studies.framework.learning import TRAJECTORY

RESULTS = (TRAJECTORY,)
