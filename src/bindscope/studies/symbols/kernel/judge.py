"""AS13: the kernel says which templates can be learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.stats.ranks import Rank
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, range_of
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
Ranked = list[tuple[list[Rank], str]]  # the predictors' rank correlations with an n, and which n in words


def judge_kernel(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS13: ridge regression learns exactly the tasks whose N lets it; trained transformers and n stand beside."""
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
    finding = conclude(
        _criterion(kernel, errors, learnable, refused),
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


def _losses(trained: xr.Dataset, tasks: list[str]) -> np.ndarray:
    """Test losses of all transformers that were trained on these tasks."""
    chosen = trained.last_loss.sel(split="test").isel(variant=np.flatnonzero(np.isin(trained.task.values, tasks)))
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
        "at or above the part of the labels that lies in the null directions."
    ),
    control_description="With labels dealt out again among the training sequences the error stays above a half in every task.",
    results=("kernel", "learnability"),
    judge=judge_kernel,
    draw=defer(f"{__package__}.draw", "draw_kernel_claim"),
)

CLAIMS: tuple[Claim, ...] = (AS13,)
