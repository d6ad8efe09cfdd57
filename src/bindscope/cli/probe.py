"""``bindscope probe``: what can be read off the residual stream at single positions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from bindscope.cli.options import HERE, AtLeastOne, Place, Seed
from bindscope.cli.outcome import check_out, open_binding_run, show_progress, write_out
from bindscope.cli.table import format_table

if TYPE_CHECKING:
    import xarray as xr

Where = Literal["all", "rhs", "question"]


def probe(
    run: str,
    /,
    *,
    probes: Annotated[tuple[Literal["linear", "logistic", "mlp"], ...], Parameter(negative="")] = ("linear",),
    layers: Annotated[tuple[int, ...], Parameter(negative="")] = (),
    positions: Where | None = None,
    n: AtLeastOne = 1000,
    seed: Seed = 1,
    step: str = "last",
    place: Place = HERE,
    out: Path | None = None,
) -> None:
    """Probe the residual stream for the values of all variables, position by position.

    Fits on 2N programs and tests on N others. Accuracy counts the variables that
    a program assigns; the state is right when all of them are. Beside the best
    cell stand shuffled labels, an untrained model, and what one scores by always
    saying line 1's constant.

    Examples:
        bindscope probe binding-laptop
        bindscope probe binding-plain --layers 5 --layers 6 --n 500
        bindscope probe binding-plain --probes linear --probes mlp --positions question
        bindscope probe binding-laptop --positions rhs --out probes.svg

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    probes
        Which probes; give it once per kind. logistic and mlp are slow.
    layers
        Which layers; give it once per layer. All, and the residual stream that leaves the last, when left out.
    positions
        all; rhs: right-hand sides, query and colon; question: the last right-hand side, query and colon. All for linear
        probes and question for others when left out.
    n
        How many programs are tested; twice as many are fitted on.
    seed
        The seed that draws programs, shuffled labels and the untrained model.
    step
        Which checkpoint: a step, or 'last'.
    out
        A figure (svg, pdf, png) or the numbers (nc).
    """
    import numpy as np
    import torch

    from bindscope.measures.binding.probes import probe_positions

    check_out(out)
    opened, task = open_binding_run(run, place)
    found = opened.find_step(step)
    rng = np.random.default_rng(seed)
    fit, test = (task.sample_evaluation(rng, size)["test"] for size in (2 * n, n))
    where = positions or ("all" if probes == ("linear",) else "question")
    with show_progress("probing") as on_progress:
        dataset = probe_positions(
            opened.checkpoint(found),
            fit,
            test,
            torch.Generator().manual_seed(seed),
            probes=probes,
            layers=layers or None,
            positions=choose_positions(where, task.lines),
            on_progress=on_progress,
        )
    dataset.attrs |= {"run": opened.name, "step": found, "seed": seed}
    print(f"{opened.name} at step {found:,}; fitted on {2 * n} programs, tested on {n} others\n")
    print(format_probes(dataset))
    if out is not None:
        from bindscope.studies.plots.subspaces import figure_probes

        figure = None if out.suffix.lower() == ".nc" else figure_probes(dataset)
        print(f"\nwritten to {write_out(dataset, out, figure)}")


def choose_positions(where: Where, n_lines: int) -> list[int]:
    """Token positions by a word for them."""
    from bindscope.tasks.binding.positions import NamedPosition, n_positions, position_of

    if where == "all":
        return list(range(n_positions(n_lines)))
    lines = range(1, n_lines + 1) if where == "rhs" else [n_lines]
    sides = [position_of(NamedPosition("rhs", line), n_lines) for line in lines]
    return [*sides, position_of(NamedPosition("query"), n_lines), position_of(NamedPosition("colon"), n_lines)]


def format_probes(dataset: xr.Dataset) -> str:
    """For each condition and probe its best cell by accuracy, then what one scores without a probe."""
    rows = []
    for condition in dataset.condition.values:
        for kind in dataset.probe.values:
            cells = dataset.sel(condition=condition, probe=kind)
            best = cells.isel(cells.accuracy.argmax(["layer", "position"]))  # type: ignore[arg-type]
            rows.append([
                f"{condition}, {kind}", f"{int(best.layer)}", str(best.position_name.item()), f"{float(best.accuracy):.3f}",
                f"{float(best.accuracy_low):.3f}–{float(best.accuracy_high):.3f}", f"{float(cells.late_accuracy.max()):.3f}",
                f"{float(cells.state.max()):.3f}",
            ])  # fmt: skip
    for name, words in (("line_1", "line 1's constant for all"), ("majority", "commonest digit")):
        values = [float(dataset[f"{name}_{measure}"]) for measure in ("accuracy", "late_accuracy", "state")]
        rows.append([words, "–", "–", f"{values[0]:.3f}", "–", f"{values[1]:.3f}", f"{values[2]:.3f}"])
    headings = ["", "layer", "best position", "accuracy", "interval", "best, root line ≥ 3", "best whole state"]
    count = dataset.attrs["n_variables_tested"]
    notes = (
        f"accuracy: {count:,} assigned variables; the best of {dataset.sizes['layer'] * dataset.sizes['position']} cells "
        "is chosen on the tested programs, so it leans high.\n"
        "whole state: all variables of a program right at once; this definition is ours."
    )
    return f"{format_table(headings, rows, numbers=[1, 3, 5, 6])}\n\n{notes}"
