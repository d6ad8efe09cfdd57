"""AS4, AS5, AS6 and AS10: printing, repetition and majority."""

from __future__ import annotations

from bindscope.studies.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
