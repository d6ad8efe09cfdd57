"""AS13: the kernel says which templates can be learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.stats.ranks import Rank
from bindscope.studies.framework.claims import Claim, Condition, Finding, Fixed, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, range_of
from bindscope.studies.symbols.efficiency.evidence import FITTED
from bindscope.studies.symbols.kernel.define import find_task
from bindscope.studies.symbols.kernel.learnability import (
    COMMON,
    HALF,
    PREDICTORS,
    exactly,
    half_sizes,
    kernels_of,
    losses_at,
    rank_predictors,
    ridge_bounds,
)
from bindscope.studies.symbols.published import REPORTED

BETA = 3.0
ROUNDING = 1e-3  # of an error that should not be below its floor
FEWEST_OF_EACH = 2  # tasks called learnable, and not
NOISE = 0.05  # how far 500 test sequences may bring a loss below its floor
Ranked = list[tuple[list[Rank], str]]  # the predictors' rank correlations with an n, and which n in words


def judge_kernel(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS13: ridge regression and trained transformers learn exactly the tasks whose N lets them."""
    kernel, trained = results["kernel"].sel(beta=BETA), results["learnability"]
    verdicts = {str(task): str(verdict) for task, verdict in zip(kernel.task.values, kernel.verdict.values)}
    learnable = [task for task, verdict in verdicts.items() if verdict == "learnable"]
    refused = [task for task, verdict in verdicts.items() if verdict == "not learnable"]
    if min(len(learnable), len(refused)) < FEWEST_OF_EACH:
        return not_testable(
            f"the kernel decides {len(learnable)} tasks to be learnable and {len(refused)} not to be, "
            f"and {FEWEST_OF_EACH} of each are needed"
        )
    errors = kernel.ridge_error.mean("seed")
    control, beside = _control(kernel, learnable)
    ranked = _rank(trained, kernel)
    fitted, fitted_quantities = _fitted_control(trained, refused)
    control, beside = (*control, *fitted), (*beside, *fitted_quantities)
    finding = conclude(
        (*_criterion(kernel, errors, learnable, refused), *_trained_criterion(trained, kernel, learnable, refused)),
        control,
        (*_ridge_quantities(kernel, errors, learnable, refused), *_trained_quantities(trained, ranked, refused)),
        beside,
    )
    return finding.adding(_describe_trained(trained, ranked, refused))


def _criterion(
    kernel: xr.Dataset, errors: xr.DataArray, learnable: list[str], refused: list[str]
) -> tuple[Condition, ...]:
    first, last = errors.isel(n=0), errors.isel(n=-1)
    n = int(errors.n[-1])
    worst = max(learnable, key=lambda task: float(last.sel(task=task)))
    stuck = [task for task in learnable if not last.sel(task=task) < min(HALF, float(first.sel(task=task)))]
    gaps = {task: float(errors.sel(task=task).min()) - float(kernel.floor.sel(task=task)) for task in refused}
    lowest = min(gaps, key=lambda task: gaps[task])
    return (
        Condition(
            not stuck,
            f"ridge regression learns all {len(learnable)} tasks with a nonsingular N: its error on unseen symbols falls "
            f"to {float(last.sel(task=worst)):.2f} or less at n = {n:,}",
            f"with n = {n:,} sequences ridge regression has not halved its error on {_names(stuck)}, which N calls learnable",
        ),
        Condition(
            gaps[lowest] >= -ROUNDING,
            f"the {len(refused)} tasks whose labels N cannot hold stay at their floor or above, at every n",
            f"{find_task(lowest).title} is answered better than N allows: {-gaps[lowest]:.2f} below its floor",
        ),
    )


def _trained_criterion(
    trained: xr.Dataset, kernel: xr.Dataset, learnable: list[str], refused: list[str]
) -> tuple[Condition, ...]:
    """Transformers halve their loss where N lets them, and stay at the floor where it does not."""
    sizes = half_sizes(trained)
    late = [task for task in learnable if task not in sizes or sizes[task].censored == "above"]
    floors = {task: float(kernel.floor.sel(task=task)) for task in refused if len(_losses(trained, [task]))}
    below = {task: floor - float(_losses(trained, [task]).min()) for task, floor in floors.items()}
    lowest = max(below, key=lambda task: below[task], default=None)
    train = "'bindscope experiment learnability'"
    return (
        Condition(
            None if late else True,
            f"trained transformers halve their loss in all {len(learnable)} learnable tasks",
            "",
            f"trained transformers have not halved their loss, within the n trained, in {len(late)} of {len(learnable)} "
            f"learnable tasks ({_names(late)}); {train} trains what is missing",
        ),
        Condition(
            None if lowest is None or len(below) < FEWEST_OF_EACH else below[lowest] <= NOISE,
            f"trained transformers stay at their floor or above in the {len(below)} tasks that N cannot hold",
            ""
            if lowest is None
            else f"on {find_task(lowest).title} a transformer is {below[lowest]:.2f} below the floor of N",
            f"transformers are trained on {len(below)} tasks that N cannot hold, and {FEWEST_OF_EACH} are needed; {train} does",
        ),
    )


def _fitted_control(trained: xr.Dataset, refused: list[str]) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """Where a transformer does not learn what N refuses, it has learned its training sequences: training did not fail."""
    losses = _losses(trained, refused, "train")
    if not len(losses):
        return (), ()
    words = f"there their training sequences are learned (loss {losses.max():.2f} at worst)"
    condition = Condition(bool(losses.max() <= FITTED), words, f"{words}: training itself fails")
    return (condition,), (range_of("trained, loss on training sequences where not learnable", losses, "1"),)


def _control(kernel: xr.Dataset, learnable: list[str]) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """With the labels dealt out again among the sequences there is nothing to learn, and nothing may be learned."""
    shuffled = kernel.shuffled_error.isel(n=-1).sel(task=learnable).mean("seed")
    lowest = float(shuffled.min())
    quantity = Quantity(
        "error with shuffled labels (mean, range over tasks)",
        float(shuffled.mean()), lowest, float(shuffled.max()), len(learnable), "1",
    )  # fmt: skip
    return (
        Condition(
            lowest > HALF,
            f"with shuffled labels nothing is learned (error {lowest:.2f} or more)",
            f"with shuffled labels the error still falls to {lowest:.2f}",
        ),
    ), (quantity,)


def _ridge_quantities(
    kernel: xr.Dataset, errors: xr.DataArray, learnable: list[str], refused: list[str]
) -> tuple[Quantity, ...]:
    last, n = errors.isel(n=-1), int(errors.n[-1])
    hardest = min(learnable, key=lambda task: float(kernel.smallest.sel(task=task)))
    return (
        cell_of("smallest λ", kernel, "smallest", unit="1", task=hardest),
        range_of(f"ridge error at n = {n:,}, learnable", last.sel(task=learnable).values, "1"),
        range_of("… not learnable", last.sel(task=refused).values, "1"),
    )


def _trained_quantities(trained: xr.Dataset, ranked: Ranked, refused: list[str]) -> tuple[Quantity, ...]:
    quantities = []
    losses = _losses(trained, refused)
    if len(losses):
        quantities.append(range_of("trained, loss where not learnable", losses, "1"))
    for ranks, words in ranked:
        quantities += [
            Quantity(f"τ of {PREDICTORS[rank.predictor]} and {words}", rank.tau, rank.low, rank.high, rank.n_tasks, "1")
            for rank in ranks
        ]
    return tuple(quantities)


def _describe_trained(trained: xr.Dataset, ranked: Ranked, refused: list[str]) -> str:
    """Beside the verdict: what trained transformers do, and whether N foretells how many sequences they need."""
    sizes, losses = half_sizes(trained), _losses(trained, refused)
    learned = [task for task, size in sizes.items() if task not in refused and size.censored != "above"]
    asked = [task for task in sizes if task not in refused]
    parts = [
        f"Trained transformers halve their loss in {len(learned)} of {len(asked)} learnable tasks within the n trained"
    ]
    if len(losses):
        parts.append(f"and end at {losses.min():.2f} or more where N is singular")
    sentences = [", ".join(parts) + "."]
    for ranks, words in ranked[:2]:
        listed = "; ".join(f"{PREDICTORS[rank.predictor]}, {rank}" for rank in ranks)
        sentences.append(
            f"How {words} goes with what N says, in rank correlations over {ranks[0].n_tasks} tasks: {listed}."
        )
    return " ".join(sentences)


def _rank(trained: xr.Dataset, kernel: xr.Dataset) -> Ranked:
    kernels = kernels_of(kernel)
    needs: dict[str, Mapping[str, Any]] = {
        "a trained transformer's n of half loss": {task: size.bounds for task, size in half_sizes(trained).items()},
        f"its loss at n = {COMMON}": exactly(losses_at(trained)),
        "its n with identity scaling": {task: size.bounds for task, size in half_sizes(trained, "both").items()},
        "ridge regression's n": ridge_bounds(kernel),
    }
    ranked = [(rank_predictors(kernels, bounds), words) for words, bounds in needs.items()]
    return [(ranks, words) for ranks, words in ranked if ranks]


def _losses(trained: xr.Dataset, tasks: list[str], split: str = "test") -> np.ndarray:
    """Last losses of all transformers that were trained on these tasks."""
    chosen = trained.last_loss.sel(split=split).isel(variant=np.flatnonzero(np.isin(trained.task.values, tasks)))
    losses = np.asarray(chosen.values, float).ravel()
    return losses[np.isfinite(losses)]


def _names(tasks: list[str]) -> str:
    return ", ".join(find_task(task).title for task in tasks)


AS13 = Claim(
    id="AS13",
    title="The kernel says what can be learned",
    statement=(
        "If templates are disjoint and the matrix N of their kernel with fresh symbols is nonsingular, regression with the "
        "kernel of a wide random transformer answers sequences of unseen symbols, given enough training sequences."
    ),
    paper=REPORTED["AS13"],
    measure=(
        "N by quasi-random integration with an interval for its smallest eigenvalue λ (β = 3, positions as large as symbols, "
        "or none), on tasks of two to four templates; kernel ridge regression on n sequences over n symbols, its error over all "
        "unseen symbols computed exactly; transformers trained on the same tasks ('bindscope experiment learnability'), and "
        "rank correlations between what N says and the n of half loss, over pairs of tasks whose order is known."
    ),
    criterion=(
        "In every task whose N is nonsingular (or whose labels have no part in its null directions), ridge regression's error "
        "on unseen symbols falls with n to below a half; in every task whose labels N cannot hold it stays, at every n, "
        "at or above the part of the labels that lies in the null directions. Trained transformers halve their loss in every "
        "task of the first kind (inconclusive where they have not by the largest n trained) and stay within "
        f"{NOISE:g} of that floor, or above it, in every task of the second kind."
    ),
    control_description=(
        "With labels dealt out again among the training sequences the error of ridge regression stays above a half in every "
        f"task; transformers have learned their training sequences (loss at most {FITTED:g}) where N refuses new ones."
    ),
    results=("kernel", "learnability"),
    judge=judge_kernel,
    draw=defer(f"{__package__}.draw", "draw_kernel_claim"),
    fixed=Fixed(
        "2026-11-17",
        "the kernel of all seventeen tasks, and trained curves of fifteen; that these are judged was decided after seeing them",
    ),
)

CLAIMS: tuple[Claim, ...] = (AS13,)
