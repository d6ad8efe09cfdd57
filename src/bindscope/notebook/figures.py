"""Figures of what a notebook asks for and no other page draws: phases, one program's answer, lens and attention."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from bindscope.errors import BindscopeError
from bindscope.interventions.outcome import summarise_outcomes
from bindscope.studies.plots.heat_map import add_colour_bar, draw_cells
from bindscope.studies.plots.outcomes import figure_summary
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    DASHES,
    GREY,
    INK,
    MUTED,
    PHASE_COLOURS,
    figure_style,
    format_step,
    phase_colours,
    set_fraction_axis,
    set_step_axis,
)
from bindscope.studies.plots.subspaces import figure_projections

SHOWN_FROM = 0.05  # an output is drawn when its probability ever comes this far
MOST_SHOWN = len(CATEGORIES)
N_DIGITS = 10


def figure_phases(dataset: xr.Dataset) -> Figure:
    """Each phase as a bar from its first to its last step, with its accuracy."""
    names = [str(name) for name in dataset.phase.values]
    colours = {**phase_colours(names), **PHASE_COLOURS}
    with figure_style():
        figure = Figure(figsize=(6.4, 0.8 + 0.4 * max(len(names), 1)), layout="constrained")
        axes = figure.add_subplot()
        for row, name in enumerate(names):
            first, last = (int(dataset[end].values[row]) for end in ("first_step", "last_step"))
            axes.barh(row, last - first, left=first, height=0.6, color=colours[name])
            text = f" {format_step(first)} – {format_step(last)}, accuracy {float(dataset.accuracy.values[row]):.3f}"
            axes.text(last, row, text, va="center", fontsize=8, color=INK)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.margins(x=0.35)
        axes.set_xlim(left=0)
        axes.set_xlabel("training step")
        axes.grid(False, axis="y")
    return figure


def figure_prediction(dataset: xr.Dataset) -> Figure:
    """The likeliest outputs over training, or as bars at one step; the true answer is blue."""
    probability = dataset.probability.transpose("step", "output").values
    outputs = [str(output) for output in dataset.output.values]
    order = np.argsort(-probability.max(0), kind="stable")
    likely = [int(index) for index in order if probability[:, index].max() >= SHOWN_FROM][:MOST_SHOWN]
    answer = str(dataset.attrs["answer"])
    with figure_style():
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.add_subplot()
        if len(probability) == 1:
            colours = [BLUE if outputs[index] == answer else GREY for index in likely]
            axes.bar(range(len(likely)), probability[0, likely], color=colours, width=0.65)
            axes.set_xticks(range(len(likely)), [outputs[index] for index in likely])
        else:
            others = iter(list(zip(CATEGORIES, DASHES))[1:])
            for index in likely:
                right = outputs[index] == answer
                colour, dash = (BLUE, "-") if right else next(others, (GREY, "-"))
                label = f"{outputs[index]} (answer)" if right else outputs[index]
                axes.plot(dataset.step.values, probability[:, index], color=colour, linestyle=dash, label=label)
            set_step_axis(axes, dataset.step.values)
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        set_fraction_axis(axes)
        axes.set_ylabel("probability")
        axes.set_title(f"{dataset.attrs['program']}  → {answer}", loc="left", fontsize=9, color=INK)
    return figure


def figure_lens(dataset: xr.Dataset, reading: str = "answer") -> Figure:
    """One reading at every layer and position: the answer's probability, or ``reading="line_1"``."""
    if reading not in dataset:
        raise BindscopeError(
            f"there is no reading '{reading}' here; there are {', '.join(map(str, dataset.data_vars))}."
        )
    with figure_style():
        figure = Figure(
            figsize=(2.0 + 0.16 * dataset.sizes["position"], 1.3 + 0.3 * dataset.sizes["layer"]), layout="constrained"
        )
        axes = figure.add_subplot()
        low, high = (0, 1) if dataset[reading].attrs.get("units") == "fraction" else (None, None)
        mesh = draw_cells(
            axes, dataset[reading].values, rows=dataset.layer.values, columns=dataset.token.values, colours="cividis",
            limits=(low, high),
        )  # fmt: skip
        axes.tick_params(axis="x", labelsize=6.5)
        axes.set_ylabel("after layers")
        add_colour_bar(axes, mesh, reading.replace("_", " "))
        axes.set_title(f"{dataset.attrs['program']}  → {dataset.attrs['answer']}", loc="left", fontsize=9, color=INK)
    return figure


def figure_attention(dataset: xr.Dataset) -> Figure:
    """Every head's pattern, a row of heads for each layer."""
    n_layers, n_heads = dataset.sizes["layer"], dataset.sizes["head"]
    with figure_style():
        figure = Figure(figsize=(1.7 * n_heads, 1.8 * n_layers), layout="constrained")
        panels = figure.subplots(n_layers, n_heads, squeeze=False)
        for (layer, head), axes in np.ndenumerate(panels):
            axes.imshow(dataset.pattern.values[layer, head], cmap="cividis", vmin=0, vmax=1)
            axes.set_title(f"L{layer}.H{head}", fontsize=7.5)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)
        figure.suptitle(
            f"rows attend to columns · {dataset.attrs['program']}", fontsize=9, color=INK, x=0.01, ha="left"
        )
    return figure


def figure_patch(dataset: xr.Dataset, metric: str | None = None, seed: int = 0) -> Figure:
    """The means over pairs, of the metric that was asked for: a heat map of the grid, or over several steps a curve."""
    metric = metric or str(dataset.attrs.get("metric", "success"))
    if metric not in dataset:
        raise BindscopeError(f"there is no metric '{metric}' here; there are {', '.join(map(str, dataset.data_vars))}.")
    summary = summarise_outcomes(dataset, np.random.default_rng([seed, 1]))
    return figure_summary(summary, metric, str(dataset.attrs.get("title", "")))


def figure_swap(dataset: xr.Dataset) -> Figure:
    """The digits' probabilities before, in the counterfactual, and after the swap."""
    names = [str(name) for name in dataset.condition.values]
    with figure_style():
        figure = Figure(figsize=(2.6 * len(names), 2.6), layout="constrained")
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axes, name in zip(panels, names):
            fractions = dataset.probability.sel(condition=name).values[:N_DIGITS]
            answers = {dataset.attrs["base_answer"]: GREY, dataset.attrs["source_answer"]: BLUE}
            axes.bar(
                range(len(fractions)),
                fractions,
                color=[answers.get(str(digit), MUTED) for digit in range(len(fractions))],
            )
            axes.set_xticks(range(len(fractions)))
            axes.set_title(name, loc="left", fontsize=9, color=INK)
            set_fraction_axis(axes)
        title = f"{dataset.attrs['control']}: {dataset.attrs['rank']} dimensions for {dataset.attrs['of']}"
        figure.suptitle(f"{title} · blue: the counterfactual's answer", fontsize=9, color=INK, x=0.01, ha="left")
    return figure


def figure_points(dataset: xr.Dataset) -> Figure:
    """A program's tokens along the first two axes, each written with its token and position."""
    with figure_style():
        figure = Figure(figsize=(4.2, 3.6), layout="constrained")
        axes = figure.add_subplot()
        x, y = dataset.coordinate.values[:, 0], dataset.coordinate.values[:, 1]
        axes.scatter(x, y, s=24, color=BLUE, linewidths=0)
        for index, token in enumerate(dataset.token.values):
            label = f"{token} @{int(dataset.position.values[index])}"
            axes.annotate(label, (x[index], y[index]), (4, 4), textcoords="offset points", fontsize=8, color=INK)
        axes.set_xlabel("axis 1")
        axes.set_ylabel("axis 2")
        axes.margins(0.15)
        title = f"{dataset.attrs['of']}, layer {dataset.attrs['layer']}, {dataset.attrs['axes']} axes"
        axes.set_title(title, loc="left", fontsize=9, color=INK)
    return figure


def figure_result(dataset: xr.Dataset) -> Figure:
    """The figure of the claim that reads this result and nothing else of a run, or the drawing that shows it."""
    from bindscope.studies.framework.verify import all_studies

    name = str(dataset.attrs.get("result", ""))
    if name == "projections":
        return figure_projections(
            dataset.sel(quality="values", kind="frozen").assign_attrs(
                axes=f"frozen to step {int(dataset.step.values[-1])}",
                inside="the subspace of values",
                layer=int(dataset.search_layer.sel(quality="values")),
                position=str(dataset.search_position.sel(quality="values").item()),
            )
        )
    for study in all_studies():
        experiments = {result.name for result in study.results if result.experiments}
        for claim in study.claims:
            if claim.results[:1] == (name,) and set(claim.results[1:]) <= experiments:
                return claim.draw({name: dataset})
        for drawing in study.drawings:
            if drawing.results[0] == name:
                return drawing.draw({name: dataset})
    raise BindscopeError(f"no figure shows the result '{name}' alone; see RunView.verify().plot(CLAIM).")
