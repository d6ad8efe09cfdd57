"""Verdicts at a glance: a line for each claim with a few of its numbers, and how many claims got each verdict.

>>> rows = summarise_claims([neutral, deep], [laptop], {"VB8": ("heuristic plateau",)})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bindscope.errors import BindscopeError
from bindscope.studies.framework.claims import VERDICTS, Quantity
from bindscope.studies.framework.verify import Judged, Verification

if TYPE_CHECKING:
    import xarray as xr

Headlines = Mapping[
    str, Sequence[str]
]  # claim → its numbers to show: how their labels begin, and after => other words for them


def summarise_claims(shown: Sequence[Verification], others: Sequence[Verification], headlines: Headlines) -> str:
    """One line for each claim, with a column for each run in ``shown``.

    A claim that cannot be tested on any of them has the verdict of the first of ``others`` on which it can.
    """
    parts = [_row(["claim", "the paper", *(f"`{each.run}`" for each in shown), "seeds"])]
    parts.append("|---" * (3 + len(shown)) + "|")
    for index, judged in enumerate(zip(*(each.judged for each in shown))):
        cells, counted, claim = [_cell(each, headlines) for each in judged], list(judged), judged[0].claim
        elsewhere = None if any(each.datasets for each in judged) else _find_elsewhere(others, index)
        if elsewhere is not None:
            counted = [elsewhere.judged[index]]
            cells[0] = f"on `{elsewhere.run}`: {_cell(counted[0], headlines)}"
        seeds = ", ".join(dict.fromkeys(count_seeds(each) for each in counted))
        parts.append(_row([f"{claim.id} {claim.title}", claim.paper, *cells, seeds]))
    return "\n".join(parts)


def count_verdicts(rows: Sequence[tuple[str, Verification, Sequence[Verification]]]) -> str:
    """How many claims got each verdict, and which: a line for each study and run, with other runs of the study.

    A claim that cannot be tested on the run is counted as on the first of the others on which it can. The last line adds
    up the first run of each study.
    """
    parts = [_row(["study", "run", "claims", *VERDICTS]), "|---" * (3 + len(VERDICTS)) + "|"]
    first: dict[str, dict[str, list[str]]] = {}
    for title, verification, others in rows:
        found: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
        borrowed: dict[str, list[str]] = {}  # other run → the claims that it is asked about
        for index, judged in enumerate(verification.judged):
            elsewhere = None if judged.datasets else _find_elsewhere(others, index)
            if elsewhere is not None:
                judged = elsewhere.judged[index]
                borrowed.setdefault(elsewhere.run, []).append(judged.claim.id)
            found[judged.finding.verdict].append(judged.claim.id)
        run = "; ".join(
            [f"`{verification.run}`", *(f"`{name}` for {' and '.join(ids)}" for name, ids in borrowed.items())]
        )
        counts = [f"{len(ids)}: {', '.join(ids)}" if ids else "0" for ids in found.values()]
        parts.append(_row([title, run, str(len(verification.judged)), *counts]))
        first.setdefault(title, found)
    totals = [sum(len(found[verdict]) for found in first.values()) for verdict in VERDICTS]
    parts.append(_row(["all", "the first of each study", str(sum(totals)), *map(str, totals)]))
    return "\n".join(parts)


def _find_elsewhere(others: Sequence[Verification], index: int) -> Verification | None:
    """The first run that has what the claim of this number reads."""
    return next((each for each in others if each.judged[index].datasets), None)


def count_seeds(judged: Judged) -> str:
    """How many trainings a verdict rests on: a number, or a range where variants have different numbers of seeds."""
    counts = [count for dataset in judged.datasets.values() for count in _seeds_of(dataset)]
    least, most = min(counts, default=1), max(counts, default=1)
    return f"{most}" if least == most else f"{least} to {most}"


def _seeds_of(dataset: xr.Dataset) -> list[int]:
    if "seed" not in dataset.sizes:
        return []
    if "variant" not in dataset.sizes or "status" not in dataset:
        return [dataset.sizes["seed"]]
    trained = (dataset["status"] != "") & dataset["status"].notnull()
    return [int(count) for count in trained.sum("seed") if count]


def _cell(judged: Judged, headlines: Headlines) -> str:
    quantities, claim = [*judged.finding.quantities, *judged.finding.control], judged.claim.id
    lines = [_line(quantities, wanted, claim) for wanted in headlines.get(claim, ())] if quantities else []
    return "<br>".join([f"**{judged.finding.verdict}**", *lines])


def _line(quantities: Sequence[Quantity], wanted: str, claim: str) -> str:
    """``"end of all seeds"`` finds the number whose label begins so; ``"end of all seeds => end"`` calls it 'end'."""
    start, _, words = wanted.partition(" => ")
    found = next((each for each in quantities if each.label.startswith(start)), None)
    if found is None:
        raise BindscopeError(f"{claim}: none of its numbers is called '{start} …'.")
    of = f", n {found.n:,}" if found.n is not None and found.unit == "fraction" else ""
    return f"{words or found.label}: {found.number}{of}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
