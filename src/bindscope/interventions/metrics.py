"""The metrics that come with Bindscope, by name, with their units; ``outcome`` says what each is."""

from __future__ import annotations

UNITS = {"success": "fraction", "kept": "fraction", "logit_difference": "1", "new_logit": "1", "kl": "nat"}
METRICS = tuple(UNITS)
