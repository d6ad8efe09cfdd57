"""The paper's claims against a run, with the figure behind each. Only what is kept is judged: nothing is measured here."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.web.again import in_python
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, Missing
from bindscope.web.page import SVG, Page, Parameters, Resource
from bindscope.web.programs import FAMILIES as OF_PROGRAMS
from bindscope.web.sums import FAMILIES as OF_SUMS

if TYPE_CHECKING:
    from bindscope.studies.claims import Claim, Quantity, Study
    from bindscope.studies.verify import Judged

FAMILIES = (*OF_PROGRAMS, *OF_SUMS)
NOT_MEASURED = "not measured yet"
_DRAWING = threading.Lock()  # the settings of figures are the process's own


def read_claims(lab: Lab, run: LabRun) -> dict[str, Any]:
    """Over (claim): what the paper says, what this run says, and why; over (quantity) every number behind it."""
    import xarray as xr

    study = _study(run)
    judged = [judge_claim(run, claim) for claim in study.claims]
    dataset = xr.Dataset(
        _claim_columns(run, study, judged) | _quantity_columns(judged),
        {"claim": [claim.id for claim in study.claims]},
    )
    dataset.attrs = {"study": study.title}
    return to_body(
        dataset,
        Provenance(run=run.name, step=run.run.steps[-1] if run.run.steps else None, seed=0, interval="95 % intervals"),
        title=f"Claims: {study.title}",
        command=f"bindscope verify {run.name}",
        python=in_python(run, "run.verify()"),
    )


def draw_claim(lab: Lab, run: LabRun, claim: str) -> str:
    """The study's own figure of a claim, on light paper."""
    from bindscope.studies.style import figure_to_svg_file

    try:
        found = _study(run).find_claim(claim)
    except BindscopeError as problem:
        raise Missing(str(problem)) from None
    judged = judge_claim(run, found)
    if isinstance(judged, tuple):
        raise Missing(f"{run.name}: {_say_missing(run, found, judged)}")
    if not judged.has_figure:
        raise Missing(f"{run.name}: {found.id} has no figure: {judged.finding.reason}")
    with _DRAWING:
        return figure_to_svg_file(judged.draw(), found.id, f"{found.id}: {found.title}. {judged.finding.reason}")


def judge_claim(run: LabRun, claim: Claim) -> Judged | tuple[str, ...]:
    """What the kept results say about a claim, or the names of those that are missing."""
    from bindscope.studies.verify import judge_kept

    return judge_kept(run.library, claim)


def _claim_columns(run: LabRun, study: Study, judged: Iterable[Judged | tuple[str, ...]]) -> dict[str, Any]:
    rows = []
    for claim, found in zip(study.claims, judged, strict=True):
        if isinstance(found, tuple):
            verdict, reason, figure = NOT_MEASURED, _say_missing(run, claim, found), False
        else:
            verdict, reason, figure = found.finding.verdict, found.finding.reason, found.has_figure
        rows.append(
            {
                "title": claim.title,
                "verdict": verdict,
                "paper": claim.paper,
                "reason": reason,
                "statement": claim.statement,
                "measure": claim.measure,
                "criterion": claim.criterion,
                "control": claim.control_description,
                "results": ", ".join(claim.results),
                "figure": f"runs/{run.name}/claims/{claim.id}.svg" if figure else "",
            }
        )
    names = rows[0] if rows else ()
    return {name: ("claim", [row[name] for row in rows]) for name in names}


def _quantity_columns(judged: Iterable[Judged | tuple[str, ...]]) -> dict[str, Any]:
    rows = []
    for found in judged:
        if isinstance(found, tuple):
            continue
        for kind, quantities in (("found", found.finding.quantities), ("control", found.finding.control)):
            rows += [(found.claim.id, kind, *_quantity_row(quantity)) for quantity in quantities]
    names = ("of", "kind", "label", "text", "value", "low", "high", "n")
    return {f"quantity_{name}": ("quantity", [row[place] for row in rows]) for place, name in enumerate(names)}


def _quantity_row(quantity: Quantity) -> tuple[Any, ...]:
    numbers = (quantity.value, quantity.low, quantity.high, quantity.n)
    return (quantity.label, quantity.number, *(float("nan") if number is None else float(number) for number in numbers))


def _say_missing(run: LabRun, claim: Claim, names: tuple[str, ...]) -> str:
    return f"{claim.id} reads {' and '.join(names)}: measure with 'bindscope verify {run.name} --claim {claim.id}'."


def _study(run: LabRun) -> Study:
    from bindscope.studies.verify import find_study

    return find_study(run.family)


def _drawable(lab: Lab, run: LabRun) -> Iterator[Parameters]:
    for claim in _study(run).claims:
        judged = judge_claim(run, claim)
        if not isinstance(judged, tuple) and judged.has_figure:
            yield {"claim": claim.id}


PAGE = Page(
    "claims",
    resources=(
        Resource("runs/{run}/claims.json", read_claims, "The paper's claims against a run", families=FAMILIES),
        Resource("runs/{run}/claims/{claim}.svg", draw_claim, "The figure behind a claim", media=SVG, families=FAMILIES,
                 each=_drawable),
    ),
)  # fmt: skip
