"""What each experiment of study 1 found, in sentences made from the numbers of its dataset.

Every function takes the dataset as it is: with fewer seeds or variants than planned it says less, never something else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from bindscope.intervals import wilson_interval
from bindscope.measures.phases import find_transition

THREE_PHASES = "random, heuristic, systematic"


def conclude_seeds(dataset: xr.Dataset) -> str:
    runs = _cells(dataset, str(dataset.variant.values[0]))
    alike = sum(str(cell.phases.item()) == THREE_PHASES for cell in runs)
    plateau = [float(cell.phase_accuracy.sel(phase="heuristic")) for cell in runs]
    return (
        f"{alike} of {len(runs)} seeds go through the three phases random, heuristic, systematic. "
        f"The heuristic plateau has an accuracy of {_range(plateau, _fraction)}. "
        f"It is left: {_steps(runs, 'left_plateau')}. Every depth is at 90 % from: {_steps(runs, 'learned')}. "
        f"The last accuracy is {_range([float(cell.last_accuracy) for cell in runs], _fraction)}.{_describe_paths(runs)}"
    )


def conclude_fixed_length(dataset: xr.Dataset) -> str:
    """The phases, and what each seed answers at other lengths and at deeper chains."""
    parts = [conclude_seeds(dataset)]
    for cell in _cells(dataset, str(dataset.variant.values[0])):
        grid, n = cell.grid_accuracy, cell.grid_n
        known = grid.grid_depth <= int(dataset.depth.max())
        at = {
            "at 16 lines": (grid.grid_lines == 16) & known,
            "shorter": (grid.grid_lines < 16) & known,
            "longer": (grid.grid_lines > 16) & known,
            "deeper": (grid.grid_lines <= 16) & ~known,
        }
        counted = {name: float(n.where(mask).sum()) for name, mask in at.items()}
        said = [
            f"{_fraction(float((grid * n).where(mask).sum()) / counted[name])} {name}"
            for name, mask in at.items()
            if counted[name]
        ]
        parts.append(f"Seed {int(cell.seed)} answers {', '.join(said)}.")
    return " ".join(parts)


def conclude_held_out(dataset: xr.Dataset) -> str:
    parts = []
    for cell in _cells(dataset, str(dataset.variant.values[0])):
        known = cell.dropna("step", subset=["accuracy"])  # other seeds may have been trained for longer
        last = known.isel(step=-1)
        ordinary = _with_interval(float(last.accuracy), float(cell.n))
        held = _with_interval(float(last.held_out_accuracy), float(cell.n_held_out))
        reached = [find_transition(known.step.values, known[name].values) for name in ("held_out_accuracy", "accuracy")]
        plateau = _in_phase(cell.held_out_accuracy, cell, "heuristic", "step")
        parts.append(
            f"Seed {int(cell.seed)} ends at {held} on questions about combinations that it never met, and at {ordinary} on "
            f"the others; it reaches 90 % at step {_step(reached[0])} on the first and {_step(reached[1])} on the second."
        )
        if plateau.size:
            parts.append(
                f"In the heuristic phase accuracy on held-out combinations goes from {_fraction(float(plateau[0]))} to "
                f"{_fraction(float(plateau[-1]))}."
            )
        if "held_out_predictions" in cell:
            seen = _in_phase(cell.held_out_predictions, cell, "heuristic", "checkpoint")
            if seen.size:
                parts.append(
                    f"Answers to ordinary questions that are such a combination fall from {_fraction(float(seen[0]))} at step "
                    f"{int(seen.checkpoint[0]):,} to {_fraction(float(seen[-1]))} at step {int(seen.checkpoint[-1]):,}."
                )
    return " ".join(parts)


def conclude_weighting(dataset: xr.Dataset) -> str:
    sentences = []
    for name in map(str, dataset.variant.values):
        cells = _cells(dataset, name)
        phases = sorted({str(cell.phases.item()) or "none" for cell in cells})
        heuristic = [float(cell.follows_early_lines.max()) for cell in cells]
        text = (
            f"With {name} weighting the phases are {' or '.join(phases)}; of the programs that lines 1 and 2 mislead, at "
            f"most {_range(heuristic, _fraction)} are answered from those lines at any time; every depth at 90 %: "
            f"{_steps(cells, 'learned')}"
        )
        if "longest_chain_fraction" in dataset:
            at = [int(cell.longest_chain_fraction.argmax("checkpoint")) for cell in cells]
            longest = [float(cell.longest_chain_fraction[index]) for cell, index in zip(cells, at)]
            another = [float(cell.another_chain_fraction[index]) for cell, index in zip(cells, at)]
            text += (
                f"; where the longest chain misleads, its digit is given at most {_range(longest, _fraction)} of the time, "
                f"that of another chain {_range(another, _fraction)} at the same checkpoint"
            )
        sentences.append(f"{text}.")
    return " ".join(sentences)


def conclude_comparison(dataset: xr.Dataset) -> str:
    """Loss, encoder: when each variant left the plateau and learned."""
    return " ".join(f"{_describe_variant(dataset, str(name))}." for name in dataset.variant.values)


def conclude_identity(dataset: xr.Dataset) -> str:
    names = [str(name) for name in dataset.variant.values]
    sentences = []
    for name in names:
        if "+" not in name and f"{name}+identity" in names:
            sentences.append(
                f"{name}: {_outcome(dataset, name)}; with identity-scaling terms {_outcome(dataset, f'{name}+identity')}."
            )
    for name in names:
        if name.endswith(("+scores", "+outputs")):
            sentences.append(f"{name}: {_outcome(dataset, name)}.")
    return " ".join([*sentences, *_describe_parts(dataset)])


def conclude_reassignment(dataset: xr.Dataset) -> str:
    sentences = []
    for name in map(str, dataset.variant.values):
        cells = _cells(dataset, name)
        lasts = [cell.write_fraction.dropna("checkpoint", how="all").isel(checkpoint=-1) for cell in cells]
        sentences.append(f"Trained {name}, {_describe_writes(lasts)}.")
        looks = [_strongest(cell.write_attention, "layer", "head") for cell in cells]
        sentences.append(
            f"Its last checkpoint gives a queried variable written before {_range([a for a, _ in looks], _number)} of its "
            f"attention to its first write and {_range([b for _, b in looks], _number)} to its last, in the layer that "
            "attends to them most."
        )
    if "laptop_write_fraction" in dataset:
        last = dataset.laptop_write_fraction.isel(laptop_checkpoint=-1)
        first_write, last_write = _strongest(dataset.laptop_write_attention, "laptop_layer", "laptop_head")
        sentences.append(
            f"The shipped binding-laptop (16 lines, every variable assigned once), {_describe_writes([last])}; attention "
            f"{_number(first_write)} to the first write and {_number(last_write)} to the last."
        )
    return " ".join(sentences)


def conclude_long(dataset: xr.Dataset) -> str:
    sentences = [f"{_describe_variant(dataset, str(name))}." for name in dataset.variant.values]
    if "accuracy_at" in dataset:
        for name in map(str, dataset.variant.values):
            rows = dataset.accuracy_at.sel(variant=name).mean("depth").dropna("seed", how="all")
            ends = rows.isel(lines=[0, -1])
            if rows.sizes["seed"]:
                sentences.append(
                    f"Trained to {name.replace('-', ' ')}, it answers {_range(ends[:, 0].values, _fraction)} at "
                    f"{int(ends.lines[0])} lines and {_range(ends[:, 1].values, _fraction)} at {int(ends.lines[1])}."
                )
    return " ".join(sentences)


def _describe_variant(dataset: xr.Dataset, name: str) -> str:
    cells = _cells(dataset, name)
    return (
        f"{name} ({_count(len(cells), 'seed')}): plateau left {_steps(cells, 'left_plateau')}; every depth at 90 % "
        f"{_steps(cells, 'learned')}; last accuracy {_range([float(c.last_accuracy) for c in cells], _fraction)}"
    )


def _outcome(dataset: xr.Dataset, name: str) -> str:
    cells = _cells(dataset, name)
    learned = sum(bool(cell.learned.notnull()) for cell in cells)
    if not learned:
        last = _range([float(cell.last_accuracy) for cell in cells], _fraction)
        left = sum(bool(cell.left_plateau.notnull()) for cell in cells)
        return f"learned by none of {_count(len(cells), 'seed')} ({left} left the plateau, last accuracy {last})"
    return f"learned by {learned} of {_count(len(cells), 'seed')} ({_steps(cells, 'learned')})"


def _describe_parts(dataset: xr.Dataset) -> list[str]:
    if "accuracy_without_later" not in dataset:
        return []
    later = dataset.accuracy_without_later.mean("laptop_depth")
    first = dataset.accuracy_without_layer.isel(layer=0).mean("laptop_depth")
    alike = dataset.likeness.sel(target="right of the assignment")
    scaled_a = dataset.scaled_a.isel(layer=slice(2, None))
    return [
        f"In the shipped binding-laptop, accuracy (mean of {dataset.sizes['laptop_depth']} depths, whole model "
        f"{_fraction(float(dataset.accuracy_with_all.mean()))}) is {_fraction(float(later.sel(part='trained scores')))} without "
        f"the trained scores of all layers after the first and {_fraction(float(later.sel(part='identity scores')))} without "
        f"their identity scores ({_fraction(float(later.sel(part='identity scores reversed')))} with the sign of a turned); "
        f"in the first layer it is {_fraction(float(first.sel(part='trained scores')))} without the trained scores and "
        f"{_fraction(float(first.sel(part='identity outputs')))} without the identity outputs.",
        f"{int((scaled_a < 0).sum())} of the {scaled_a.size} heads from layer 2 on have a negative a: they look for what is "
        f"opposite to themselves. The position right of an assignment is just that to the name it assigns: their product is "
        f"{float(alike[1:].min()):.2f} at the lowest, against {float(dataset.likeness.sel(target='itself').mean()):.2f} for "
        "a name with itself.",
    ]


def _describe_paths(cells: Sequence[xr.Dataset]) -> str:
    """What the identity-scaling terms do in the seeds that learned the task."""
    learned = [cell for cell in cells if bool(cell.learned.notnull())]
    if not learned or "accuracy_without_later" not in learned[0]:
        return ""

    def without(part: str) -> str:
        return _range([float(cell.accuracy_without_later.sel(part=part)) for cell in learned], _fraction)

    negative = [float((cell.scaled_a.isel(layer=slice(2, None)) < 0).mean()) for cell in learned]
    return (
        f" In the {_count(len(learned), 'seed')} that learned the task, accuracy without the trained scores of all layers "
        f"after the first is {without('trained scores')}, without their identity scores {without('identity scores')}; of "
        f"the heads from layer 2 on, {_range(negative, _fraction)} have a negative a."
    )


def _describe_writes(fractions: Sequence[xr.DataArray]) -> str:
    def of(situation: str, outcome: str) -> str:
        return _range([float(each.sel(situation=situation, outcome=outcome)) for each in fractions], _fraction)

    return (
        f"where the queried variable was written before, the last write wins {of('query', 'right')} and the first "
        f"{of('query', 'rival')}; where a variable inside the chain was written before its reference, the write before the "
        f"reference wins {of('earlier', 'right')} and the first {of('earlier', 'rival')}; where it is written again after "
        f"its reference, the write before wins {of('later', 'right')} and the later one {of('later', 'rival')}"
    )


def _in_phase(values: xr.DataArray, cell: xr.Dataset, phase: str, over: str) -> xr.DataArray:
    """What was measured from the first to the last step of a phase; empty where there was none."""
    first, last = (cell[name].sel(phase=phase) for name in ("phase_first_step", "phase_last_step"))
    return values.where((values[over] >= first) & (values[over] <= last), drop=True).dropna(over)


def _strongest(attention: xr.DataArray, layer: str, head: str) -> tuple[float, float]:
    """Mean over heads of the attention to the first and the last write, in the layer where their sum is largest."""
    by_layer = attention.mean(head)  # [write, layer]
    chosen = by_layer.isel({layer: int(by_layer.sum("write").values.argmax())})
    return float(chosen.sel(write="first")), float(chosen.sel(write="last"))


def _cells(dataset: xr.Dataset, variant: str) -> list[xr.Dataset]:
    """The runs of a variant that are there."""
    rows = dataset.sel(variant=variant)
    return [rows.sel(seed=seed) for seed in dataset.seed.values if bool(rows.last_step.sel(seed=seed).notnull())]


def _steps(cells: Sequence[xr.Dataset], variable: str) -> str:
    """``step 400, step 550, never in 2,000 steps``: one for each seed."""
    return ", ".join(
        f"step {float(cell[variable]):,.0f}" if bool(cell[variable].notnull()) else _never(cell) for cell in cells
    )


def _never(cell: xr.Dataset) -> str:
    return f"never in {float(cell.last_step):,.0f} steps"


def _step(step: int | None) -> str:
    return "never" if step is None else f"{step:,}"


def _range(values: Sequence[float] | np.ndarray, form: object) -> str:
    known = [float(value) for value in values if value == value]
    if not known:
        return "nothing"
    low, high = form(min(known)), form(max(known))  # type: ignore[operator]
    return low if low == high else f"{low} to {high}"


def _fraction(value: float) -> str:
    return f"{100 * value:.1f} %"


def _number(value: float) -> str:
    return f"{value:.2f}"


def _with_interval(fraction: float, n: float) -> str:
    low, high = wilson_interval(round(fraction * n), round(n))
    return f"{100 * fraction:.2f} % (95 % interval {100 * float(low):.2f}–{100 * float(high):.2f}, n = {n:,.0f})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
