"""Claims judged for a page: on a run, or on a study's experiments. Only what is saved is judged: no model runs here."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from bindscope.errors import BindscopeError
from bindscope.web.again import in_python, in_shell
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import LabRun, Missing
from bindscope.web.page import Parameters

if TYPE_CHECKING:
    from bindscope.studies.framework.claims import Claim, Quantity, Study
    from bindscope.studies.framework.results import Library
    from bindscope.studies.framework.verify import Judged

NOT_MEASURED = "not measured yet"
INTERVAL = "95 % intervals"
_DRAWING = threading.Lock()  # the settings of figures are the process's own
_JUDGED: WeakKeyDictionary[Library, dict[str, Judged]] = WeakKeyDictionary()  # claims by id, of libraries in use


@dataclass(frozen=True)
class Subject:
    """What claims are judged on: a run, or the experiments of a study that needs none."""

    name: str  # as ``bindscope verify`` takes it
    study: Study
    library: Library
    figures: str  # the address below which figures are
    provenance: Provenance
    command: str
    python: str

    @staticmethod
    def of_run(run: LabRun) -> Subject:
        step = run.run.steps[-1] if run.run.steps else None
        provenance = Provenance(run=run.name, step=step, seed=0, interval=INTERVAL)
        again = in_shell(run, "verify"), in_python(run, "run.verify()")
        return Subject(run.name, _study(run), run.library, f"runs/{run.name}/claims", provenance, *again)


def claims_body(subject: Subject) -> dict[str, Any]:
    """All claims about a subject as a body."""
    import xarray as xr

    study = subject.study
    judged = [judge_once(subject.library, claim) for claim in study.claims]
    dataset = xr.Dataset(
        _claim_columns(subject, judged) | _quantity_columns(judged),
        {"claim": [claim.id for claim in study.claims]},
    )
    dataset.attrs = {"study": study.title}
    body = to_body(
        dataset,
        subject.provenance,
        title=f"Claims: {study.title}",
        command=subject.command,
        python=subject.python,
    )
    missing = (name for found in judged if isinstance(found, tuple) for name in found)
    return body | {"missing": list(dict.fromkeys(missing)) or None}


def claim_figure(subject: Subject, claim: str) -> str:
    """The figure behind one claim as a whole SVG file."""
    from bindscope.studies.plots.style import figure_to_svg_file

    try:
        found = subject.study.find_claim(claim)
    except BindscopeError as problem:
        raise Missing(str(problem)) from None
    judged = judge_once(subject.library, found)
    if isinstance(judged, tuple):
        raise Missing(f"{subject.name}: {_say_missing(subject, found, judged)}")
    if not judged.has_figure:
        raise Missing(f"{subject.name}: {found.id} has no figure: {judged.finding.reason}")
    with _DRAWING:
        return figure_to_svg_file(judged.draw(), found.id, f"{found.id}: {found.title}. {judged.finding.reason}")


def drawable_claims(subject: Subject) -> Iterator[Parameters]:
    """The claims that have a figure, for the export."""
    for claim in subject.study.claims:
        judged = judge_once(subject.library, claim)
        if not isinstance(judged, tuple) and judged.has_figure:
            yield {"claim": claim.id}


def judge_once(library: Library, claim: Claim) -> Judged | tuple[str, ...]:
    """A claim as ``judge_kept`` judges it; judged again only where one of its results is another than before."""
    from bindscope.studies.framework.verify import judge_kept

    known = _JUDGED.setdefault(library, {})
    if claim.id in known and known[claim.id].claim is claim:
        found = {name: library.find(name) for name in claim.results}
        datasets = known[claim.id].datasets
        if all(each is not None and each.dataset is datasets.get(name) for name, each in found.items()):
            return known[claim.id]
    judged = judge_kept(library, claim)
    if not isinstance(judged, tuple):
        known[claim.id] = judged
    return judged


def _claim_columns(subject: Subject, judged: Iterable[Judged | tuple[str, ...]]) -> dict[str, Any]:
    rows = []
    for claim, found in zip(subject.study.claims, judged, strict=True):
        if isinstance(found, tuple):
            verdict, reason, figure = NOT_MEASURED, _say_missing(subject, claim, found), False
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
                "fixed": str(claim.fixed or ""),
                "results": ", ".join(claim.results),
                "missing": ", ".join(found) if isinstance(found, tuple) else "",
                "figure": f"{subject.figures}/{claim.id}.svg" if figure else "",
            }
        )
    return {name: ("claim", [row[name] for row in rows]) for name in (rows[0] if rows else ())}


def _quantity_columns(judged: Iterable[Judged | tuple[str, ...]]) -> dict[str, Any]:
    rows = []
    for found in judged:
        if isinstance(found, tuple):
            continue
        for kind, quantities in (("found", found.finding.quantities), ("control", found.finding.control)):
            rows += [(found.claim.id, kind, *_quantity_row(quantity)) for quantity in quantities]
    names = ("of", "kind", "label", "text", "value", "low", "high", "n")
    return {f"quantity_{name}": ("quantity", [row[index] for row in rows]) for index, name in enumerate(names)}


def _quantity_row(quantity: Quantity) -> tuple[Any, ...]:
    numbers = (quantity.value, quantity.low, quantity.high, quantity.n)
    return (quantity.label, quantity.number, *(float("nan") if number is None else float(number) for number in numbers))


def _say_missing(subject: Subject, claim: Claim, names: tuple[str, ...]) -> str:
    return f"{claim.id} reads {' and '.join(names)}: measure with '{subject.command} --claim {claim.id}'."


def _study(run: LabRun) -> Study:
    from bindscope.studies.framework.verify import find_study

    return find_study(run.family)
