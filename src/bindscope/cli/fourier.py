"""``bindscope fourier``: the Fourier components that a model of modular addition computes with."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.labelled import dataset_to_mapping
from bindscope.cli.options import HERE, AtLeastOne, Flag, Place, Seed
from bindscope.cli.outcome import check_out, write_out
from bindscope.cli.table import format_table
from bindscope.runs.locate import find_run

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run


def fourier(
    run: str,
    /,
    *,
    step: str = "last",
    neuron: int | None = None,
    n: AtLeastOne = 200,
    seed: Seed = 0,
    place: Place = HERE,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Fit every neuron by Fourier components; key frequencies, clock or pizza.

    The model runs on all sums of two numbers. Each pre-activation of the last MLP
    is fitted by cosines of one frequency; logits are split by frequency.

    Examples:
        bindscope fourier assign-add
        bindscope fourier assign-add --step 1000 --out neurons.svg
        bindscope fourier assign-add --neuron 70 --out neuron.png

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    step
        Which checkpoint: a step, 'first' or 'last'.
    neuron
        Show one neuron's Fourier component instead.
    n
        How many (n1, n2, output) to draw for gradient symmetricity.
    seed
        The seed that draws them, the shuffled numbers and the untrained model.
    out
        Also write a figure (.svg, .pdf, .png) or the numbers (.nc).
    json
        Print the numbers as JSON instead of tables.
    """
    from bindscope.families import require_kind
    from bindscope.runs.directory import Run

    check_out(out)
    opened = Run.open(find_run(run), place)
    require_kind(opened.name, opened.config.task, "sums")
    found = opened.find_step(step)
    if neuron is not None:
        dataset, text, figure = _one_neuron(opened, found, neuron, _draws(out))
    else:
        dataset, text, figure = _all_neurons(opened, found, n, seed, _draws(out))
    print(json_format.dumps(dataset_to_mapping(dataset)) if json else text)
    if out is not None:
        path = write_out(dataset, out, figure)
        if not json:
            print(f"\nwritten  {path}")


def format_neurons(dataset: xr.Dataset) -> str:
    """A row for each frequency that neurons have, then fractions, losses and the measures of clock and pizza."""
    import numpy as np

    from bindscope.studies.framework.quantities import fraction_of

    model, fits, size = dataset.sel(source="model").isel(step=0), float(dataset.attrs["fits"]), dataset.sizes["neuron"]
    explained, rows = model.explained_variance.fillna(0).values, []
    for k in dataset.component.values:
        chosen = model.frequency.values == k
        if chosen.any():
            fraction = float(model.output_fraction.values[chosen].sum())
            fitting = int((explained[chosen] >= fits).sum())
            key = "key" if int(dataset.is_key.sel(component=k)) else ""
            rows.append(
                [str(k), str(chosen.sum()), str(fitting), f"{np.median(explained[chosen]):.3f}", f"{fraction:.1%}", key]
            )
    headings = ["k", "neurons", f"fit ≥ {fits:.0%}", "median explained", "of the answer", ""]
    fractions = [
        fraction_of(f"neurons that fit by {fits:.0%}", float((explained >= fits).mean()), size),
        fraction_of("  untrained model", float((dataset.untrained_explained_variance.values >= fits).mean()), size),
        fraction_of("  numbers shuffled", float((dataset.permuted_explained_variance.values >= fits).mean()), size),
        fraction_of("sums answered correctly", float(model.accuracy), int(dataset.attrs["n_pairs"])),
        fraction_of("  by Fourier components alone", float(model.fitted_accuracy), int(dataset.attrs["n_pairs"])),
    ]
    words = [[fraction.label, fraction.number] for fraction in fractions]
    words.append(["outputs in phase with φ1 + φ2", f"{float(model.phase_agreement):.3f} of 1"])
    return "\n\n".join(
        [
            format_table(headings, rows, numbers=range(5)),
            format_table(["", "fraction, 95 % interval"], words),
            f"loss in nats by the key frequencies alone (restricted) and without them (excluded)\n{_format_losses(dataset)}",
            f"clock (1) or pizza (0), and the cosine of gradients to either operand\n{_format_clock_pizza(dataset)}",
            f"how much of each of the first principal components over numbers is one Fourier component\n{_format_circularity(dataset)}",
        ]
    )


def _format_circularity(dataset: xr.Dataset) -> str:
    rows = [
        [str(name), *(f"{float(value):.3f}" for value in dataset.circularity.sel(matrix=name))]
        for name in dataset.matrix.values
    ]
    return format_table(
        ["matrix", *map(str, dataset.principal.values)], rows, numbers=range(1, 1 + dataset.sizes["principal"])
    )


def _all_neurons(opened: Run, step: int, n: int, seed: int, draws: bool) -> tuple[xr.Dataset, str, Any]:
    import numpy as np

    from bindscope.measures.arithmetic.clock_pizza import draw_triples
    from bindscope.measures.arithmetic.components import measure_clock_pizza, measure_losses
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.measures.arithmetic.key_frequencies import find_key_frequencies
    from bindscope.measures.arithmetic.spectra import embedding_spectra
    from bindscope.studies.assign_add.neurons.measure import neurons_at, sums_task

    task, model = sums_task(opened), opened.checkpoint(step)
    dataset = neurons_at(opened, step, np.random.default_rng(seed))
    key = find_key_frequencies(dataset.sel(source="model"))
    losses = measure_losses(model, task, key).rename(accuracy="accuracy_by_frequency")
    triples = draw_triples(CyclicNumbers.of(task), np.random.default_rng(seed), n)
    attributes = dataset.attrs
    dataset = dataset.merge(losses).merge(measure_clock_pizza(model, task, triples))
    spectra = embedding_spectra(SumForms.of(model, task), CyclicNumbers.of(task))
    dataset["circularity"] = spectra.circularity
    dataset["is_key"] = ("component", np.isin(dataset.component.values, key).astype("int8"))
    dataset.attrs = {**attributes, "n": n, "seed": seed}
    title = f"{opened.name} at step {step:,}: Fourier components in {dataset.sizes['neuron']} neurons, numbers by {attributes['ordered_by']}"
    figure = None
    if draws:
        from bindscope.studies.assign_add.neurons.draw import draw_neurons

        figure = draw_neurons({"neurons": dataset})
    return dataset, f"{title}\n\n{format_neurons(dataset)}", figure


def _one_neuron(opened: Run, step: int, neuron: int, draws: bool) -> tuple[xr.Dataset, str, Any]:
    from bindscope.measures.arithmetic.components import describe_neuron, read_fit
    from bindscope.studies.assign_add.neurons.measure import sums_task

    dataset = describe_neuron(opened.checkpoint(step), sums_task(opened), neuron)
    dataset = dataset.assign_attrs(run=opened.name, step=step)
    names = ["frequency", "phase_1", "phase_2", "amplitude_1", "amplitude_2", "explained_variance", "free_explained_variance"]  # fmt: skip
    rows = [
        [str(source), *(f"{float(dataset[name].sel(source=source)):.3g}" for name in names)]
        for source in dataset.source.values
    ]
    headings = ["source", "k", "φ1", "φ2", "amplitude 1", "amplitude 2", "explained", "with free amplitudes"]
    title = f"{opened.name} at step {step:,}: neuron {neuron}"
    figure = None
    if draws:
        from bindscope.studies.assign_add.neurons.draw import draw_neuron

        fit = read_fit(dataset)
        subtitle = f"on all literal sums · k = {fit.frequency}, explained variance {fit.explained_variance:.1%}"
        figure = draw_neuron(dataset.preactivation.sel(source="model").values, fit, title, subtitle)
    return dataset, f"{title}\n\n{format_table(headings, rows, numbers=range(1, 8))}", figure


def _format_losses(dataset: xr.Dataset) -> str:
    rows = [
        [source, pairs.replace("_", " "), *(f"{float(dataset.loss.sel(source=source, pairs=pairs, logits=kind)):.4f}" for kind in dataset.logits.values)]
        for source in dataset.source.values
        for pairs in dataset.pairs.values
    ]  # fmt: skip
    return format_table(["source", "pairs", *map(str, dataset.logits.values)], rows, numbers=range(2, 5))


def _format_clock_pizza(dataset: xr.Dataset) -> str:
    rows = [
        ["distance irrelevance", source, f"{float(dataset.distance_irrelevance.sel(source=source)):.3f}"]
        for source in dataset.source.values
    ]
    for name, words in (("gradient", "gradient symmetricity"), ("value", "  with attention held fixed")):
        value, low, high = (float(dataset[f"{name}_symmetricity{end}"]) for end in ("", "_low", "_high"))
        rows.append([words, "model", f"{value:.3f} [{low:.3f}–{high:.3f}]"])
    return format_table(["", "source", ""], rows)


def _draws(out: Path | None) -> bool:
    return out is not None and out.suffix.lower() != ".nc"
