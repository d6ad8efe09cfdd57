"""AS8 and AS9: wider models need more symbols."""

from __future__ import annotations

from bindscope.studies.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
