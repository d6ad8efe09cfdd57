"""``bindscope explain``: what judging a claim would compute, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.cli.table import format_duration, format_table
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.cli.verify import Several
    from bindscope.questions.claimed import OpenedClaims
    from bindscope.studies.framework.claims import Claim
    from bindscope.studies.framework.documents import Document
    from bindscope.studies.framework.plan import Plan
else:
    from bindscope.cli.verify import Several

SUFFIX = ".toml"


def explain(
    claim: str,
    run: str | None = None,
    /,
    *,
    result: Several = (),
    metric: Several = (),
    n: AtLeastOne | None = None,
    seed: Seed = 0,
    fresh: Flag = False,
    seconds: Annotated[float, Parameter(validator=Number(gt=0))] = 30.0,
    place: Place = HERE,
) -> None:
    """Say what judging a claim would compute: results, cells, forward passes, operations, time and memory.

    Without a run, what a claim reads and when it holds. With one, also what is
    saved already and an estimate of what measuring the rest would take, told from a
    trial on few examples and one checkpoint that ends after --seconds; nothing is
    saved. Names in a document that a result does not have are refused here, before
    anything long runs.

    Examples:
        bindscope explain VB3
        bindscope explain VB4 binding-laptop --fresh
        bindscope explain mine.toml binding-laptop

    Parameters
    ----------
    claim
        A claim that comes with Bindscope (VB3), or a TOML file with claims of your own.
    run
        A path, a name under ./runs, or a shipped run's name; or symbols, for the claims of study 3.
    result
        A result of your own that the claims read, PATH.py:NAME; give it once per result.
    metric
        A metric of your own that they ask for by its name, PATH.py:NAME; give it once per metric.
    n
        How many examples each measurement would draw; each has its own number when left out.
    seed
        The seed that would draw them.
    fresh
        As if nothing were saved.
    seconds
        How long the trial of each result may take. One that takes longer is ended and gives lower bounds; with more time it gives an estimate.
    """
    from bindscope.cli.verify import open_library, open_own
    from bindscope.studies.framework.documents import Document
    from bindscope.studies.framework.verify import find_claim

    own = open_own([Path(claim)], result, metric) if claim.endswith(SUFFIX) else None
    if own is None and (result or metric):
        raise BindscopeError("--result, --metric: claims of your own read these; name their TOML file.")
    documents = own.documents if own is not None else (Document(find_claim(claim)),)
    if run is None:
        print("\n\n".join("\n".join(describe(document)) for document in documents))
        return
    from bindscope.studies.framework.plan import plan_results

    library, _ = open_library(run, n=n, seed=seed, fresh=fresh, placement=place, own=own or _nothing())
    plans = plan_results(library, (name for document in documents for name in document.claim.results), seconds)
    known = {plan.name: plan.dataset for plan in plans if plan.dataset is not None}
    print("\n\n".join("\n".join(describe(document, known)) for document in documents), end="\n\n")
    print("\n".join(format_plans(library.name, plans)))


def describe(document: Document, known: dict[str, xr.Dataset] | None = None) -> Iterator[str]:
    """A claim in a few lines; of terms, how many numbers each reads where its dataset is ``known``."""
    claim = document.claim
    yield f"{claim.id}  {claim.title}"
    yield f"  claimed    {claim.statement} Figure to compare with: {claim.paper}."
    if not list(document.terms):
        yield from (f"  {word:10} {text}" for word, text in _words(claim).items())
    for section in ("requires", "criterion", "control"):
        for index, term in enumerate(getattr(document.terms, section), start=1):
            reads = ""
            if known and term.result in known:
                count = _count(document, section, index, known)
                reads = f" (reads {count:,} number{'' if count == 1 else 's'})"
            yield f"  {section:10} {term} {term.comparison}{reads}"
    yield f"  fixed      {claim.fixed or 'not recorded'}"
    yield f"  reads      {', '.join(claim.results)}"


def format_plans(name: str, plans: list[Plan]) -> Iterator[str]:
    """The table of results, then all of it in one sentence."""
    columns = ["result", "on " + name, "n", "checkpoints", "cells", "forward passes", "operations", "time", "memory"]
    yield format_table(columns, [_row(plan) for plan in plans])
    yield from (f"note     {plan.name}: {plan.reason}" for plan in plans if plan.reason)
    due = [plan.work for plan in plans if plan.work is not None]
    if not due:
        unknown = any(plan.state == "cannot be told" for plan in plans)
        yield "nothing can be told of the rest" if unknown else "nothing has to be measured"
        return
    passes = sum(plan.passes for plan in plans)
    seconds, memory = sum(work.seconds for work in due), max(work.memory for work in due)
    ended = any(plan.at_least for plan in plans)
    yield (
        f"to measure, estimated: {'at least ' if ended else ''}as much as {passes:,.0f} whole forward passes "
        f"({sum(work.flops for work in due):.2g} operations), {'more than' if ended else 'about'} {format_duration(seconds)} "
        f"on this machine, {'more than' if ended else 'about'} {memory / 1e6:,.0f} MB of activations at once"
    )


def _row(plan: Plan) -> list[str]:
    cells = "–" if plan.dataset is None else f"{count_cells(plan.dataset):,}"
    left = [plan.name, plan.state, str(plan.n or "–"), str(plan.checkpoints or "–"), cells]
    if plan.work is None:
        return [*left, "–", "–", "–", "–"]
    work = plan.work
    costs = [f"{plan.passes:,.0f}", f"{work.flops:.2g}", format_duration(work.seconds), f"{work.memory / 1e6:,.0f} MB"]
    return [*left, *(f"> {cost}" if plan.at_least else cost for cost in costs)]


def count_cells(dataset: xr.Dataset) -> int:
    """The numbers of the largest measured variable, without examples one by one."""
    from bindscope.studies.framework.terms import EXAMPLES

    sizes = [1]
    for variable in dataset.data_vars.values():
        size = 1
        for dim, length in variable.sizes.items():
            size *= 1 if dim in EXAMPLES else length
        sizes.append(size)
    return max(sizes)


def _count(document: Document, section: str, index: int, known: dict[str, xr.Dataset]) -> int:
    from bindscope.studies.framework.terms import count_cells as count_read

    term = getattr(document.terms, section)[index - 1]
    try:
        return count_read(term, known[term.result])
    except BindscopeError as problem:
        raise BindscopeError(f"{document.claim.id}: {section} {index}, on '{term.result}': {problem}") from None


def _words(claim: Claim) -> dict[str, str]:
    return {"measure": claim.measure, "criterion": claim.criterion, "control": claim.control_description}


def _nothing() -> OpenedClaims:
    from bindscope.questions.claimed import OpenedClaims

    return OpenedClaims((), ())
