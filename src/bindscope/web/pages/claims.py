"""The paper's claims against a run, with the figure behind each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bindscope.web.claims import Subject, claim_figure, claims_body, drawable_claims
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import SVG, Page, Parameters, Resource

KINDS = ("claims",)  # of runs that a study has claims about


def read_claims(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Over (claim): what the paper says, what this run says, and why; over (quantity) every number behind it."""
    return claims_body(Subject.of_run(run))


def draw_claim(lab: Lab, run: LabRun, claim: str) -> str:
    """The study's own figure of a claim, on light paper."""
    return claim_figure(Subject.of_run(run), claim)


def _drawable(lab: Lab, run: LabRun) -> Iterator[Parameters]:
    return drawable_claims(Subject.of_run(run))


PAGE = Page(
    "claims",
    resources=(
        Resource("runs/{run}/claims.json", read_claims, "The paper's claims against a run", kinds=KINDS),
        Resource("runs/{run}/claims/{claim}.svg", draw_claim, "The figure behind a claim", media=SVG, kinds=KINDS,
                 each=_drawable),
    ),
)  # fmt: skip
