"""AS1, AS2, AS3 and AS7: who can tell equal symbols from different ones, and from how many strings."""

from __future__ import annotations

from bindscope.studies.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
