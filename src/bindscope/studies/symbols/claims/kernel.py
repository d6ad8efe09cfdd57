"""AS13: the kernel says which templates can be learned."""

from __future__ import annotations

from bindscope.studies.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
