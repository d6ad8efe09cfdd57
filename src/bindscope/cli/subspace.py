"""``bindscope subspace``: where names or values live in the residual stream, tested by swapping and held against controls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from bindscope.cli.asking import naming_options, option
from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.cli.outcome import check_out, open_binding_run, show_progress, write_out
from bindscope.cli.table import format_table
from bindscope.questions.findings import SwappedSubspace, sample_pairs, save_subspace
from bindscope.questions.opened import Opened
from bindscope.questions.render import write_command
from bindscope.questions.subspace import Project, Swap, SwapControl

if TYPE_CHECKING:
    import xarray as xr


def subspace(
    run: Annotated[str, option(Swap, "run")],
    program: Annotated[str | None, option(Swap, "program")] = None,
    counterfactual: Annotated[str | None, option(Swap, "counterfactual")] = None,
    /,
    *,
    of: Annotated[Literal["values", "names"], option(Swap, "quality")] = "values",
    method: Literal["pca", "rotation"] = "pca",
    rank: int | None = None,
    layer: int | None = None,
    position: str | None = None,
    n: AtLeastOne = 300,
    seed: Seed = 1,
    step: Annotated[str, option(Swap, "step")] = "last",
    control: Annotated[SwapControl, option(Swap, "control")] = "found",
    draws: Annotated[int, option(Swap, "draws")] = 1,
    axes: Annotated[Literal["frozen", "refitted", "random"], option(Project, "axes")] = "frozen",
    everywhere: Flag = False,
    over_training: Flag = False,
    refit: Flag = False,
    keep: Flag = False,
    place: Place = HERE,
    save: Path | None = None,
    out: Path | None = None,
) -> None:
    """Find the subspace of values or names and swap it, with controls.

    Fits on 2N pairs of programs and tests on N others. Values: pairs that differ
    in the root constant. Names: the same program asked for another variable.
    Roots on line 1 and 2 are left out. A swap succeeds when the counterfactual
    digit becomes the top output. Controls: random subspaces of equal rank,
    shuffled labels, an untrained model.

    With two programs, swaps that pair alone and prints its answer before and after.
    With one, prints where its tokens lie along the axes that --keep has saved.

    Examples:
        bindscope subspace binding-laptop --of values
        bindscope subspace binding-plain --of names --layer 2 --position question
        bindscope subspace binding-laptop --method rotation --rank 10 --n 200
        bindscope subspace binding-plain --everywhere --n 100 --out sweep.svg
        bindscope subspace binding-plain --layer 5 --position colon --over-training --out path.svg
        bindscope subspace runs/fast --over-training --keep
        bindscope subspace binding-laptop --of values --save values.safetensors
        bindscope subspace binding-laptop "c=1;d=2;a=5;b=a;#b:" "c=1;d=2;a=8;b=a;#b:" --control rest
        bindscope subspace binding-laptop "c=1;d=2;a=5;b=a;#b:" --of names

    Parameters
    ----------
    method
        pca: components chosen by an L1 classifier. rotation: directions learned by gradient through the swap.
    rank
        How many dimensions; 10 for values and 26 for names when left out, as in the paper.
    layer
        The residual stream entering this layer; one more than the last is the residual stream that leaves it.
    position
        Which tokens: rhs 1, lhs 1, …, query, colon, or several at once: rhs, chain, question, changed.
    n
        How many pairs are tested; twice as many are fitted on.
    seed
        The seed that draws pairs, random subspaces and the untrained model.
    everywhere
        Search at every layer and position instead of one, without shuffled labels and untrained model.
    over_training
        Instead of swapping, project the residual stream at all checkpoints onto two axes, for --out.
    refit
        With --over-training: fit the axes at each checkpoint again; otherwise they are frozen to --step.
    keep
        With --over-training: measure values and names at every checkpoint along frozen, refitted and random axes, and
        keep that with the run (a shipped one's in runs/verify-NAME), for the Subspace page.
    save
        Also save the found subspace with its effect, for 'bindscope apply'.
    out
        A figure (svg, pdf, png) or the numbers (nc).
    """
    import torch

    from bindscope.errors import BindscopeError
    from bindscope.subspaces import Search, default_search, measure_subspace, sweep_subspaces

    if refit and not over_training:
        raise BindscopeError("--refit: says how --over-training fits its axes; give that too.")
    if keep and not over_training:
        raise BindscopeError("--keep: keeps what --over-training measures; give that too.")
    if save is not None and (program is not None or everywhere or over_training):
        raise BindscopeError(
            f"--save {save}: saves one found subspace; leave out programs, --everywhere, --over-training."
        )
    check_out(out)
    if program is not None:
        with naming_options(Swap, Project):
            dataset = ask_program(run, program, counterfactual, of, step, control, axes, seed, draws, place)
        print(format_swap(dataset) if "condition" in dataset.dims else format_points(dataset))
        if out is not None:
            print(f"\nwritten to {write_out(dataset, out, _draw(dataset, out, of))}")
        return
    if keep:
        print(keep_projections(run, place))
        if out is None:
            return
    opened, task = open_binding_run(run, place)
    found = opened.find_step(step)
    model = opened.checkpoint(found)
    default = default_search(model, of)
    search = Search(of, method, rank, default.layer if layer is None else layer, position or default.position)
    fit, test = sample_pairs(task, of, n, seed)
    if over_training:
        dataset = _project(opened, found, model, test, search, refit)
        print(
            f"{opened.name}: {dataset.sizes['point']} points at {dataset.sizes['step']} checkpoints; axes {dataset.attrs['axes']}"
        )
    else:
        measure: Any = sweep_subspaces if everywhere else measure_subspace
        with show_progress("swapping") as on_progress:
            generator = torch.Generator().manual_seed(seed)
            dataset = measure(model, fit, test, search, generator, on_progress=on_progress)
        print(f"{opened.name} at step {found:,}; {describe(dataset)}\n")
        print(format_sweep(dataset) if everywhere else format_subspace(dataset))
    dataset.attrs |= {"run": opened.name, "step": found, "seed": seed}
    if save is not None:
        swapped = SwappedSubspace(of, search.layer, search.position, n, seed, method)
        basis = torch.from_numpy(dataset.basis.values.copy())
        options: dict[str, Any] = {
            "of": of,
            "method": method,
            "rank": search.size,
            "layer": search.layer,
            "position": search.position,
        }
        command = write_command("subspace", opened.name, **options, n=n, seed=seed, step=found)
        print(f"\nsaved    {save_subspace(save, opened, found, swapped, basis, command)}")
    if out is not None:
        print(f"\nwritten to {write_out(dataset, out, _draw(dataset, out, of))}")


def ask_program(
    run: str,
    program: str,
    counterfactual: str | None,
    of: Any,
    step: str,
    control: Any,
    axes: Any,
    seed: int,
    draws: int,
    place: Place,
) -> xr.Dataset:
    """A typed pair swapped inside the subspace, or one typed program's tokens along its axes."""
    from bindscope.cli.verify import open_library
    from bindscope.errors import BindscopeError

    def saved(name: str) -> xr.Dataset:
        found = open_library(run, placement=place)[0].find(name)
        if found is None or found.dataset is None:
            raise BindscopeError(
                f"{run}: nothing is saved to project onto; 'bindscope subspace {run} --over-training --keep' does."
            )
        return found.dataset

    opened = Opened.at(run, place)
    question: Swap | Project
    if counterfactual is not None:
        question = Swap(
            run=run,
            program=program,
            counterfactual=counterfactual,
            quality=of,
            step=step,
            control=control,
            seed=seed,
            draws=draws,
        )
        dataset = question.answer(opened)
    else:
        question = Project(run=run, program=program, quality=of, step=step, axes=axes)
        dataset = question.answer(opened, saved)
    return dataset.assign_attrs(run=opened.name, step=opened.find_step(question.step), axes=axes)


def format_swap(dataset: xr.Dataset) -> str:
    """Each run's likeliest answer, and the probabilities of the two that are asked about."""
    attrs, rows = dataset.attrs, []
    for name in dataset.condition.values:
        fractions = dataset.probability.sel(condition=name)
        top = str(fractions.output.values[int(fractions.argmax("output"))])
        answers = (attrs["base_answer"], attrs["source_answer"])
        rows.append([str(name), top, *(f"{float(fractions.sel(output=answer)):.3f}" for answer in answers)])
    head = f"{attrs['run']} at step {attrs['step']:,}: {attrs['rank']} dimensions for {attrs['of']}, {attrs['control']}"
    columns = ["run", "answers", f"p({attrs['base_answer']})", f"p({attrs['source_answer']})"]
    lines = [head, format_table(columns, rows, numbers=[2, 3])]
    if "n_success" in attrs:
        ends = (float(dataset[f"probability_{end}"].sel(output=attrs["source_answer"])) for end in ("low", "high"))
        low, high = (f"{end:.3f}" for end in ends)
        lines.append(
            f"{attrs['n_success']} of {attrs['draws']} draws give {attrs['source_answer']}; "
            f"its probability over draws, 95 %: {low} to {high}"
        )
    return "\n\n".join(lines)


def format_points(dataset: xr.Dataset) -> str:
    """Each token with its coordinates along the first two axes."""
    positions = zip(dataset.token.values, dataset.position.values, dataset.coordinate.values)
    rows = [[f"{token} @{position}", *(f"{value:+.3f}" for value in found[:2])] for token, position, found in positions]
    head = (
        f"{dataset.attrs['run']} at step {dataset.attrs['step']:,}: {dataset.attrs['of']}, {dataset.attrs['axes']} axes"
    )
    return f"{head}\n\n{format_table(['token', 'axis 1', 'axis 2'], rows, numbers=[1, 2])}"


def keep_projections(name: str, place: Place) -> str:
    """Make the result behind the Subspace page, unless it is saved already; say where it is."""
    from bindscope.cli.verify import open_library
    from bindscope.errors import BindscopeError

    library, _ = open_library(name, placement=place)
    with show_progress("checkpoints") as on_progress:
        filled = library.fill("projections", on_progress)
    if filled.dataset is None:
        raise BindscopeError(f"{library.run.name}: {filled.reason}.")
    points = f"{filled.dataset.sizes['point']} points at {filled.dataset.sizes['step']} checkpoints"
    return f"{library.run.name}: {points}, {filled.origin} in {filled.path}"


def format_subspace(dataset: xr.Dataset) -> str:
    """Every condition with its success, how often the base answer stays, and the classifier's held-out score."""
    rows = []
    for name in dataset.condition.values:
        row = dataset.sel(condition=name)
        cells = [
            _fraction(row.success_fraction),
            _interval(row.success_low, row.success_high),
            _fraction(row.kept_fraction),
        ]
        rows.append([str(name), *cells, _fraction(row.score), _interval(row.score_low, row.score_high)])
    headings = ["swapped", "success", "interval", "base kept", "held-out score", "interval"]
    draws = ", ".join(f"{value:.3f}" for value in dataset.random_success.values)
    return f"{format_table(headings, rows, numbers=[1, 3, 4])}\n\nrandom draws one by one: {draws}"


def format_sweep(dataset: xr.Dataset) -> str:
    """Success at every position and layer: in the subspace / whole residual stream."""
    rows = []
    for name in dataset.position.values:
        cells = dataset.sel(position=name)
        fractions = zip(cells.found.values, cells.whole_stream.values)
        rows.append(
            [str(name), *(f"{_fraction(found)} / {_fraction(whole)}" for found, whole in fractions), str(int(cells.n))]
        )
    headings = ["position", *(f"layer {layer}" for layer in dataset.layer.values), "n"]
    table = format_table(headings, rows, numbers=range(1, len(headings)))
    return f"success in the subspace / of the whole residual stream; – where the latter is below {dataset.attrs['least_whole']}\n\n{table}"


def describe(dataset: xr.Dataset) -> str:
    """What was looked for and where, on how many pairs, and what was left out."""
    attrs = dataset.attrs
    where = f" in layer {attrs['layer']} at {attrs['position']}" if "layer" in attrs else ""
    return (
        f"{attrs['rank']} dimensions for {attrs['of']} by {attrs['method']}{where}\n"
        f"fitted on {attrs['n_fit_pairs']} pairs, tested on {attrs['n_test_pairs']} others; left out: {attrs['exclusions']}"
    )


def _fraction(value: Any) -> str:
    return "–" if float(value) != float(value) else f"{float(value):.3f}"


def _interval(low: Any, high: Any) -> str:
    return "–" if float(low) != float(low) else f"{float(low):.3f}–{float(high):.3f}"


def _project(opened: Any, found: int, model: Any, pairs: Any, search: Any, refit: bool) -> xr.Dataset:
    from bindscope.subspaces import project_over_training
    from bindscope.subspaces.measure import check_search

    check_search(model, pairs, search)
    models = ((step, opened.checkpoint(step)) for step in opened.steps)
    frozen = None if refit else (found, model)
    return project_over_training(models, pairs, layer=search.layer, position=search.position, frozen_to=frozen)


def _draw(dataset: xr.Dataset, out: Path, of: str) -> Any:
    """The figure of a dataset; None when the numbers themselves are wanted."""
    if out.suffix.lower() == ".nc":
        return None
    from bindscope.notebook.figures import figure_points, figure_swap
    from bindscope.studies.plots.subspaces import figure_projections, figure_subspace, figure_sweep

    if "condition" in dataset.dims and "control" in dataset.attrs:
        return figure_swap(dataset)
    if "coordinate" in dataset and "step" not in dataset.dims:
        return figure_points(dataset)
    if "coordinate" in dataset:
        return figure_projections(dataset, {"values": "value", "names": "name"}[of])
    return figure_subspace(dataset) if "condition" in dataset.dims else figure_sweep(dataset)
