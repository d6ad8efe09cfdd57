"""``bindscope patch``: put activations of one program into another and see whether the answer follows."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from bindscope.cli.effects import format_summary, summarise, summary_to_json
from bindscope.cli.options import Flag, Seed
from bindscope.cli.outcome import check_out, show_progress, write_out
from bindscope.cli.pairs import (
    Drawn,
    Words,
    figure_or_none,
    find_pairs,
    find_steps,
)
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run

Grid = Literal["chain", "residual", "heads", "mlps"]
Metric = Literal["success", "logit_difference", "new_logit", "kl"]


def patch(
    run: str,
    base: str | None = None,
    counterfactual: str | None = None,
    /,
    *,
    grid: Grid = "chain",
    site: Words = (),
    neuron: Annotated[tuple[int, ...], Parameter(negative="", show_default=False)] = (),
    direction: Literal["noising", "denoising"] = "noising",
    metric: Metric | None = None,
    step: str = "last",
    steps: str | None = None,
    from_step: str | None = None,
    approximate: Flag = False,
    n: int = 200,
    depth: int | None = None,
    first_root_line: int = 3,
    seed: Seed = 0,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Patch activations of one program into another, see whether the answer follows.

    Without two programs, pairs that differ in the constant at the root of the
    queried chain are drawn. Means come with 95 % bootstrap intervals.

    Examples:
        bindscope patch binding-laptop
        bindscope patch binding-laptop "c=1;d=2;a=5;b=a;#b:" "c=1;d=2;a=8;b=a;#b:"
        bindscope patch binding-laptop --grid heads --depth 3 --out heads.svg
        bindscope patch binding-laptop --site "L2.H1@rhs 2" --site L3.mlp_out --steps all
        bindscope patch binding-plain --grid heads --approximate

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    base
        The program that is run, lines separated by ';'.
    counterfactual
        The program that activations are taken from, as long as the first.
    grid
        Cells to change one after another: the residual stream at the places of the chain, or at all positions
        (residual), each head's whole output, or each MLP's.
    site
        Change these sites together instead of a grid: L3.resid_pre@14, L2.H1 (a head's whole output), "L2.H1@rhs 2"
        (at a named place), L1.H0.q, L4.mlp_out. Give it once per site.
    neuron
        Take only these coordinates of the sites.
    direction
        noising runs the first program and takes from the second; denoising the other way round.
    metric
        What to show: success (the source's answer is on top), logit_difference, new_logit or kl.
    step
        Which checkpoint: a step, or 'last'.
    steps
        Several checkpoints: 'all', or a list such as 0,1000,last.
    from_step
        Take the activations from this checkpoint instead.
    approximate
        Estimate the grid by its gradient, and say how near that comes to the exact one.
    n
        How many pairs to draw.
    depth
        Draw pairs of this depth only.
    first_root_line
        The first line that may hold the root's constant.
    seed
        The seed that draws them.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers pair by pair (.nc).
    json
        Print the means as JSON instead of tables.
    """
    from bindscope.runs.directory import Run
    from bindscope.studies.binding.mechanism.patching import Patch, patch_steps

    check_out(out)
    shown = metric or ("logit_difference" if approximate else "success")
    opened = Run.open(find_run(run))
    drawn = find_pairs(opened, base, counterfactual, n, depth, first_root_line, seed)
    request = Patch(grid, site, neuron, direction, approximate)
    _check(request, shown, steps, from_step)
    found = find_steps(opened, step, steps)
    source_step = None if from_step is None else opened.find_step(from_step)
    with show_progress("checkpoints") as on_progress:
        dataset = patch_steps(
            opened.checkpoint, found, drawn.pairs, request, source_step=source_step, on_progress=on_progress
        )
    dataset.attrs |= {"run": opened.name, "pairs": drawn.note, "metric": shown}
    summary = summarise(dataset, seed)
    title = f"{opened.name}, {_what(request)} at {_steps_in_words(found)}"
    if json:
        print(json_format.dumps(summary_to_json(summary, shown, dataset.attrs)))
    else:
        notes = [f"{title}; {direction}", drawn.note, *_remarks(dataset.attrs, source_step)]
        print("\n".join(notes) + "\n\n" + format_summary(summary, shown))
        if approximate:
            print(f"\n{_agreement(opened.checkpoint(found[-1]), drawn, request, dataset, shown)}")
    if out is not None:
        path = write_out(dataset, out, figure_or_none(out, summary, shown, title))
        if not json:
            print(f"\nwritten  {path}")


def _check(request: Any, metric: str, steps: str | None, from_step: str | None) -> None:
    if request.neurons and not request.sites:
        raise BindscopeError("--neuron: name the sites whose neurons these are, such as --site L2.post.")
    if not request.approximate:
        return
    if metric not in ("logit_difference", "new_logit"):
        raise BindscopeError(f"--approximate: a gradient estimates logit_difference and new_logit, not {metric}.")
    if request.sites or from_step is not None or steps is not None:
        raise BindscopeError("--approximate: works on grids of one checkpoint; leave out --site, --steps, --from-step.")


def _agreement(model: Any, drawn: Drawn, request: Any, dataset: Any, metric: str) -> str:
    from dataclasses import replace

    from bindscope.interventions.attribution import compare_with_exact
    from bindscope.studies.binding.mechanism.patching import patch_model

    exact = patch_model(model, drawn.pairs, replace(request, approximate=False))
    found = compare_with_exact(dataset.isel(step=0), exact, metric)
    return (
        f"against the exact grid over {found.n_cells} cells: correlation {found.correlation:.3f}, "
        f"mean absolute error {found.mean_absolute_error:.3f}, same sign {found.sign_agreement:.0%}, "
        f"{found.top_overlap:.0%} of the {found.top} strongest"
    )


def _what(request: Any) -> str:
    if request.sites:
        neurons = f" (coordinates {', '.join(map(str, request.neurons))})" if request.neurons else ""
        return " + ".join(request.sites) + neurons
    words = {"chain": "the stream at the chain's places", "residual": "the stream", "heads": "heads", "mlps": "MLPs"}
    return words[request.grid] + (" by attribution" if request.approximate else "")


def _steps_in_words(steps: list[int]) -> str:
    return f"step {steps[0]:,}" if len(steps) == 1 else f"{len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"


def _remarks(attrs: dict[str, Any], source_step: int | None) -> list[str]:
    remarks = []
    if source_step is not None:
        remarks.append(f"activations taken from step {source_step:,}")
    identity = str(attrs.get("remark", attrs.get("heads", "")))
    if "identity path" in identity and "no identity" not in identity and "follows" not in identity:
        remarks.append(identity)
    return remarks
