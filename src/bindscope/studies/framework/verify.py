"""Check a paper's claims against a run: make the missing results, let each claim's judge speak.

>>> study = find_study(run.config.task.family)
>>> library = Library(run, study.results, folder=run.path / "results")
>>> [(judged.claim.id, judged.finding.verdict) for judged in verify(library, study.claims).judged]
[('VB1', 'replicates'), ('VB2', 'differs'), …]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.families import UnknownFamily, all_families, find_family
from bindscope.studies.framework import measuring
from bindscope.studies.framework.claims import (
    VERDICTS,
    Claim,
    Drawing,
    Finding,
    Quantity,
    Study,
    inconclusive,
    not_testable,
)
from bindscope.studies.framework.experiments import MADE_BY, SHIPPED_RUNS
from bindscope.studies.framework.results import Filled, Library
from bindscope.studies.framework.together import OnResult, fill_together

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

SHIPPED_RESULTS = SHIPPED_RUNS / "studies"  # results of studies without runs, a folder for each


@dataclass(frozen=True, eq=False)
class Judged:
    """A claim, what the run says about it, and the datasets that said it."""

    claim: Claim
    finding: Finding
    datasets: Mapping[str, xr.Dataset]
    sources: tuple[str, ...] = ()  # the run and the experiments that the datasets come from

    @property
    def has_figure(self) -> bool:
        return len(self.datasets) == len(self.claim.results)

    def draw(self) -> Figure:
        """The claim's figure on this run."""
        if not self.has_figure:
            raise BindscopeError(f"{self.claim.id}: no figure, for nothing could be measured: {self.finding.reason}")
        return self.claim.draw(self.datasets)


@dataclass(frozen=True, eq=False)
class Verification:
    """All claims that were asked for, and how each result came about."""

    run: str
    judged: tuple[Judged, ...]
    filled: Mapping[str, Filled]
    settings: Mapping[str, Mapping[str, int]]  # result → its n and seed

    @property
    def counts(self) -> dict[str, int]:
        """How many claims got each verdict."""
        found = [judged.finding.verdict for judged in self.judged]
        return {verdict: found.count(verdict) for verdict in VERDICTS}

    def to_mapping(self) -> dict[str, Any]:
        """Plain dicts and lists, ready for JSON."""
        return {
            "run": self.run,
            "claims": [_claim_mapping(judged) for judged in self.judged],
            "results": [
                {
                    "name": filled.name,
                    "origin": filled.origin,
                    "file": None if filled.path is None else str(filled.path),
                    "seconds": round(filled.seconds, 2),
                    "reason": filled.reason,
                    "note": filled.note,
                    **self.settings[filled.name],
                }
                for filled in self.filled.values()
            ],
        }


def find_study(family: str) -> Study:
    """The study whose claims are about runs of this family."""
    study: Study | None = None
    with suppress(UnknownFamily):
        study = find_family(family).study()
    if study is None:
        known = ", ".join(study.family for study in all_studies())
        raise BindscopeError(f"there are no claims about runs of the family '{family}' yet; there are for: {known}.")
    return study


def study_or_none(family: str) -> Study:
    """The same; where a family has no study, an empty one with the results that every run has."""
    with suppress(UnknownFamily):
        study: Study | None = find_family(family).study()
        if study is not None:
            return study
    return Study(family, "", (), measuring.RESULTS, curves=measuring.CURVES)


def find_claim(name: str) -> Claim:
    """A claim of any study by its id, in any case."""
    known = {claim.id: claim for study in all_studies() for claim in study.claims}
    if name.upper() not in known:
        raise BindscopeError(f"there is no claim '{name}'.{suggest_nearest(name.upper(), known)}")
    return known[name.upper()]


def all_studies() -> list[Study]:
    """Every study, in the order of the families."""
    return [study for family in all_families() if (study := family.study()) is not None and study.claims]


def studies_without_runs() -> dict[str, str]:
    """The studies that are verified by their own name, for their claims are about experiments: name → family."""
    return {family.verified_as: family.name for family in all_families() if family.verified_as}


def open_study(
    name: str, folder: Path, runs_directory: Path, n: int | None = None, seed: int = 0, fresh: bool = False
) -> tuple[Library, Study]:
    """The results and claims of a study that is verified by its own name; what was measured for it is shipped.

    >>> library, study = open_study("symbols", Path("runs/verify-symbols/results"), Path("runs"))
    """
    study = find_study(studies_without_runs()[name])
    shipped = (SHIPPED_RESULTS / name,)
    return Library(None, study.results, folder, shipped, n, seed, fresh, runs_directory, name), study


def verify(
    library: Library,
    claims: Sequence[Claim],
    on_result: OnResult | None = None,
    also: Sequence[str] = (),
    jobs: int | None = 1,
    cluster: str | None = None,
) -> Verification:
    """Fill every result that ``claims`` read, and those named ``also``, and judge the claims.

    Each result is kept as soon as it is made, so what was finished survives an interruption. Of a family without claims
    the results named ``also`` are filled alone.
    """
    if not claims and not also:
        raise BindscopeError(f"{library.name}: no published claims are about runs of this family.")
    names = (*(name for claim in claims for name in claim.results), *also)
    filled = fill_results(names, library, on_result, jobs, cluster)
    settings = {name: library.settings(library.results[name]) for name in filled}
    return Verification(library.name, tuple(judge(claim, filled, library.name) for claim in claims), filled, settings)


def draw_results(
    library: Library,
    drawing: Drawing,
    on_result: OnResult | None = None,
    jobs: int | None = 1,
    cluster: str | None = None,
) -> Figure:
    """A drawing of a run; its results are filled first."""
    filled = fill_results(drawing.results, library, on_result, jobs, cluster)
    shown = filled[drawing.results[0]]
    if shown.dataset is None:
        raise BindscopeError(f"{drawing.id}: no figure, for nothing could be measured: {shown.reason}")
    found = ((name, filled[name].dataset) for name in drawing.results)
    return drawing.draw({name: dataset for name, dataset in found if dataset is not None})


def fill_results(
    names: Iterable[str],
    library: Library,
    on_result: OnResult | None,
    jobs: int | None = 1,
    cluster: str | None = None,
) -> dict[str, Filled]:
    """These results and all they need, in ``jobs`` processes or on a cluster; None: as many as pay (``together``)."""
    ordered = library.order(names)
    fill_together(library, ordered, jobs, on_result, cluster)
    return {name: library.filled[name] for name in ordered}


def judge_kept(library: Library, claim: Claim) -> Judged | tuple[str, ...]:
    """A claim judged without running a model; where that cannot be, the names of the results to measure first."""
    found = {name: library.find(name) for name in claim.results}
    missing = tuple(name for name, filled in found.items() if filled is None)
    filled = {name: each for name, each in found.items() if each is not None}
    return missing or judge(claim, filled, library.name)


def judge(claim: Claim, filled: Mapping[str, Filled], run: str = "") -> Judged:
    """What the filled results say about a claim; without all of them nothing can be said, and the reason is given.

    Where more training might give what is missing, that is inconclusive; otherwise the claim is not testable.
    """
    lacking = [filled[name] for name in claim.results if filled[name].dataset is None]
    missing = sorted(lacking, key=lambda each: each.may_come)  # what no training brings comes first
    found = ((name, filled[name].dataset) for name in claim.results)
    datasets = {name: dataset for name, dataset in found if dataset is not None}
    return Judged(
        claim, _say_why(missing[0]) if missing else claim.judge(datasets), datasets, _sources(datasets.values(), run)
    )


def _say_why(missing: Filled) -> Finding:
    return (inconclusive if missing.may_come else not_testable)(missing.reason)


def _sources(datasets: Iterable[xr.Dataset], run: str) -> tuple[str, ...]:
    """The runs and experiments that datasets come from, by what they say of their sources, with commas between."""
    named = (text for dataset in datasets for text in str(dataset.attrs.get("source", "")).split(", "))
    return tuple(dict.fromkeys(text.removeprefix(MADE_BY) if text.startswith(MADE_BY) else run for text in named))


def _claim_mapping(judged: Judged) -> dict[str, Any]:
    claim, finding = judged.claim, judged.finding
    return {
        "id": claim.id,
        "title": claim.title,
        "paper": claim.paper,
        "criterion": claim.criterion,
        "fixed": None if claim.fixed is None else asdict(claim.fixed),
        "verdict": finding.verdict,
        "reason": finding.reason,
        "quantities": [_quantity_mapping(quantity) for quantity in finding.quantities],
        "control": [_quantity_mapping(quantity) for quantity in finding.control],
        "results": list(claim.results),
        "evidence": list(judged.sources),
    }


def _quantity_mapping(quantity: Quantity) -> dict[str, Any]:
    """JSON has no NaN: a number that is none becomes null."""
    return {name: None if value != value else value for name, value in asdict(quantity).items()}
