"""AS11: a pretrained GPT-2 against one from scratch."""

from __future__ import annotations

from bindscope.studies.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
