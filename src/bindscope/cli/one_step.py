"""``bindscope one-step``: the gradient that lets sums use variables, predicted and measured, and what a step along it does."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.options import Flag, Seed
from bindscope.cli.outcome import check_out, show_progress, write_out
from bindscope.cli.table import format_table

if TYPE_CHECKING:
    import xarray as xr


def one_step(
    *,
    modulus: int = 59,
    variables: int = 12,
    beta: float = 3.0,
    scale: float = 1e-3,
    n: int = 600,
    seed: Seed = 0,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Take the one gradient step that composes binding with addition.

    The simplified model of "Assign and Add" (Theorem C.1): its exact gradient
    against the prediction, and its answers before and after one step. Reads no run.

    Examples:
        bindscope one-step
        bindscope one-step --modulus 31 --beta 6
        bindscope one-step --scale 100
        bindscope one-step --out one_step.svg

    Parameters
    ----------
    modulus
        Sums are taken modulo this.
    variables
        How many variables there are, 4 to 26.
    beta
        How strongly '=' starts out attending to the literal operand.
    scale
        The factor λ on the logits; the prediction is for small ones.
    n
        How many sums to try the step on, in each split.
    seed
        The seed that draws them.
    out
        Also write the figure (.svg, .pdf, .png) or all numbers (.nc).
    json
        Print the numbers as JSON instead of tables.
    """
    from bindscope.measures.arithmetic.one_step import step_dataset
    from bindscope.tasks.assign_add import AssignAddTask

    check_out(out)
    task = AssignAddTask(modulus=modulus, n_variables=variables)
    with show_progress("one step") as on_progress:
        dataset = step_dataset(task, beta, scale, n, seed, on_progress)
    print(json_format.dumps(_to_json(dataset)) if json else format_step_tables(dataset))
    if out is not None:
        path = write_out(dataset, out, _figure_or_none(dataset, out))
        if not json:
            print(f"\nwritten  {path}")


def format_step_tables(dataset: xr.Dataset) -> str:
    """The terms against their prediction, then accuracy before and after with Wilson intervals."""
    from bindscope.measures.arithmetic.one_step import chosen, fit_gap, scale_limit

    about = dataset.attrs
    head = (
        f"modulus {about['modulus']}, {about['n_variables']} variables, β = {about['beta']:g}: '=' attends "
        f"{about['alpha']:.1%} to the literal and {about['epsilon']:.2%} to each other token; λ = {about['scale']:g}"
    )
    terms = [
        [term, f"{predicted:.3g}", f"{found:.3g}", f"{found / predicted:.3f}", _limit(scale_limit(dataset, term))]
        for term, predicted, found in _terms(dataset)
    ]
    fractions = ", ".join(f"{part} {fraction:.1%}" for part, fraction in _fractions(dataset).items())
    a, b = fit_gap(dataset)
    notes = (
        f"memory off the diagonal {float(dataset.off_diagonal):.2g}; squared norm: {fractions}\n"
        f"the memory's gap over β ≥ 3 and p = {', '.join(map(str, dataset.modulus.values))} is about {a:.2f}·ε + {b:.2f}/p"
    )
    answers = chosen(dataset)
    rows = [_split_row(answers, str(split)) for split in answers.split.values]
    columns = [
        "variables, pairs",
        "before",
        *(f"{d}, γ {g:.2g}" for d, g in zip(answers.direction.values, answers.step_size.values)),
    ]
    table = format_table(
        ["term, over λ", "predicted", "measured", "ratio", "10 % off from λ"], terms, numbers=[1, 2, 3, 4]
    )
    return (
        f"{head}\n\nthe negative gradient at W₀\n{table}\n{notes}\n\n"
        f"accuracy on {about['n']:,} sums each, at the step size γ that answers most of '1 seen', with 95 % Wilson intervals\n"
        f"{format_table(columns, rows)}"
    )


def _split_row(answers: xr.Dataset, split: str) -> list[str]:
    at = answers.sel(split=split)
    after = [at.sel(direction=direction) for direction in answers.direction.values]
    return [split, _fraction(at, "before"), *(_fraction(cell, "after") for cell in after)]


def _fraction(cell: Any, name: str) -> str:
    return f"{float(cell[name]):.3f}  {float(cell[f'{name}_low']):.3f}–{float(cell[f'{name}_high']):.3f}"


def _limit(scale: float) -> str:
    return "–" if scale != scale else f"{scale:.2g}"


def _terms(dataset: xr.Dataset) -> list[tuple[str, float, float]]:
    columns = (dataset.term.values, dataset.prediction.values, dataset.coefficient.values)
    return [(str(term), float(predicted), float(found)) for term, predicted, found in zip(*columns)]


def _fractions(dataset: xr.Dataset) -> dict[str, float]:
    return {str(part): float(fraction) for part, fraction in zip(dataset.part.values, dataset.norm_fraction.values)}


def _to_json(dataset: xr.Dataset) -> dict[str, Any]:
    from bindscope.measures.arithmetic.one_step import chosen

    answers = chosen(dataset)
    return {
        **dataset.attrs,
        "terms": [{"term": t, "predicted": predicted, "measured": found} for t, predicted, found in _terms(dataset)],
        "off_diagonal": float(dataset.off_diagonal),
        "norm_fraction": _fractions(dataset),
        "accuracy": [
            {
                "split": str(split),
                "before": float(answers.before.sel(split=split)),
                **{str(d): float(answers.after.sel(split=split, direction=d)) for d in answers.direction.values},
            }
            for split in answers.split.values
        ],
    }


def _figure_or_none(dataset: xr.Dataset, out: Path) -> Any:
    from bindscope.studies.assign_add.one_step.draw import draw_one_step

    return None if out.suffix.lower() == ".nc" else draw_one_step({"one_step": dataset})
