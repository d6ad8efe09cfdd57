"""How far a transplant carries a model towards its donor, on the same examples for every part.

>>> asked = ask_splits(task, rng, n=200)
>>> measure_transplants(run.checkpoint(5300), run.checkpoint(5400), ["QK1", "routing"], asked).fraction
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.stats.fractions import fraction_variables
from bindscope.tasks.task import Batch

if TYPE_CHECKING:
    from bindscope.interventions.components import Part
    from bindscope.model.transformer import Transformer

OnProgress = Callable[[int, int], None]
Rows = slice | np.ndarray  # of a batch that belong to a split
LEAST_JUMP = 0.1  # between receiver and donor: below it, a fraction of the way would be noise
N_RESAMPLES = 500
TOGETHER = " + "  # joins the names of parts that are transplanted together


@dataclass(frozen=True, eq=False)
class Asked:
    """Examples of several splits as one batch, and the task's names of tokens, by which parts may be called."""

    batch: Batch
    splits: Mapping[str, Rows]
    groups: Mapping[str, Sequence[int]] | None = None
    counted: str = "sums of each split"
    within: str = ""  # the split whose way is the total one; empty: all that differ


def measure_transplants(
    receiver: Transformer,
    donor: Transformer,
    rows: Sequence[str],
    asked: Asked,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    n_random: int = 0,
) -> xr.Dataset:
    """Over (part, split): ``accuracy`` of the receiver with each row's parts of the donor, and ``fraction``, how far this is
    of the way from the receiver's accuracy (0) to the donor's (1), with 95 % intervals (Wilson; bootstrap over examples).

    ``total_fraction`` (part) takes all splits together that differ by ``LEAST_JUMP`` or more; in the others ``fraction`` is
    missing. Parts of a row such as ``QK1 + variables`` are transplanted together. With ``n_random`` controls of each row,
    ``random_fraction`` (part, draw) is what ``total_fraction`` is of those.
    """
    found = [find_row(receiver, row, asked) for row in rows]
    ends = answer_right(receiver, asked.batch), answer_right(donor, asked.batch)  # [example] each
    counted, rng = {asked.within} if asked.within else None, np.random.default_rng([seed, 7])
    changed, drawn = [], []
    for done, parts in enumerate(found, start=1):
        changed.append(answer_transplanted(receiver, donor, parts, asked.batch))
        drawn.append([answer_control(receiver, donor, parts, asked.batch, rng) for _ in range(n_random)])
        if on_progress is not None:
            on_progress(done, len(rows))
    dataset = label_transplants(rows, *ends, np.array(changed).reshape(len(rows), -1), asked.splits, seed, counted)
    if not n_random:
        return dataset
    names = [str(draw) for draw in range(n_random)]
    totals = [
        label_fractions(names, *ends, np.array(each), asked.splits, seed, counted).total_fraction for each in drawn
    ]
    return dataset.assign(random_fraction=(("part", "draw"), np.array(totals), {"units": "fraction"}))


def answer_right(model: Transformer, batch: Batch) -> np.ndarray:
    """Which examples a model answers correctly: [example] bool."""
    from bindscope.measures.evaluation import read_answers

    return read_answers(model, batch).argmax(1) == batch.targets[:, 0]


def answer_transplanted(
    receiver: Transformer, donor: Transformer, parts: Sequence[Part], batch: Batch, shown: Batch | None = None
) -> np.ndarray:
    """Which examples the receiver answers correctly with these parts: [example] bool."""
    from bindscope.interventions.transplant import read_transplanted

    return read_transplanted(receiver, donor, parts, batch, shown).argmax(1) == batch.targets[:, 0]


def answer_control(
    receiver: Transformer, donor: Transformer, parts: Sequence[Part], batch: Batch, rng: np.random.Generator
) -> np.ndarray:
    """The control of a transplant: weights changed as much in a random direction, patterns taken from other examples."""
    import torch

    from bindscope.interventions.transplant import change_at_random

    if any(part.looks for part in parts):
        return answer_transplanted(receiver, donor, parts, batch, batch.take(rng.permutation(len(batch))))
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    return answer_right(change_at_random(receiver, donor, parts, generator), batch)


def find_row(model: Transformer, row: str, asked: Asked) -> list[Part]:
    """The parts of a row such as ``QK1 + variables``."""
    from bindscope.interventions.transplant import find_parts

    return find_parts(model.config, split_row(row), asked.groups)


def split_row(row: str) -> list[str]:
    """``QK1 + variables`` as its parts' names."""
    return [name.strip() for name in row.split("+")]


def label_transplants(
    rows: Sequence[str],
    receiver: np.ndarray,
    donor: np.ndarray,
    changed: np.ndarray,
    splits: Mapping[str, Rows],
    seed: int = 0,
    counted: Collection[str] | None = None,
) -> xr.Dataset:
    """The dataset of ``measure_transplants`` from who was right: receiver and donor [example], changed [row, example]."""
    n = np.array([len(receiver[split]) for split in splits.values()])
    hits = np.array([[right[split].sum() for split in splits.values()] for right in changed]).reshape(len(rows), len(n))
    variables: dict[str, Any] = fraction_variables("accuracy", ["part", "split"], hits, n)
    for name, right in (("receiver", receiver), ("donor", donor)):
        hits = np.array([right[split].sum() for split in splits.values()])
        variables |= fraction_variables(f"{name}_accuracy", ["split"], hits, n)
    return label_fractions(rows, receiver, donor, changed, splits, seed, counted).assign(**variables, n=("split", n))


def label_fractions(
    rows: Sequence[str],
    receiver: np.ndarray,
    donor: np.ndarray,
    changed: np.ndarray,
    splits: Mapping[str, Rows],
    seed: int = 0,
    counted: Collection[str] | None = None,
) -> xr.Dataset:
    """``fraction`` (part, split) and ``total_fraction`` (part) alone; the latter over the splits ``counted``, if given."""
    rng, among = np.random.default_rng([seed, 5]), None
    if counted is not None:
        among = np.array([name in counted for name in splits])
    fraction, total = _fractions_of_the_way(receiver, donor, changed, list(splits.values()), rng, among)
    variables: dict[str, Any] = {}
    for index, end in enumerate(("", "_low", "_high")):
        variables[f"fraction{end}"] = (("part", "split"), fraction[index], {"units": "fraction"})
        variables[f"total_fraction{end}"] = ("part", total[index], {"units": "fraction"})
    return xr.Dataset(variables, {"part": list(rows), "split": list(splits)})


def _fractions_of_the_way(
    receiver: np.ndarray,
    donor: np.ndarray,
    changed: np.ndarray,
    splits: Sequence[Rows],
    rng: np.random.Generator,
    counted: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """(value, low, high) of each row's fraction in each split, [3, row, split], and over the splits that jump, [3, row]."""

    def resample(split: Rows) -> np.ndarray:
        """The whole split, then N_RESAMPLES of it, as how often each example counts: [1 + resample, example]."""
        n = len(receiver[split])
        return np.concatenate([np.ones((1, n)), rng.multinomial(n, np.full(n, 1 / n), N_RESAMPLES)]) / n

    counts = [resample(split) for split in splits]

    def move(right: np.ndarray) -> np.ndarray:
        """By how much accuracy differs from the receiver's: [split, 1 + resample]."""
        difference = right.astype(float) - receiver
        return np.array([count @ difference[split] for count, split in zip(counts, splits)])

    way = move(donor)
    jumping = np.abs(way[:, 0]) >= LEAST_JUMP - 1e-9
    among = jumping if counted is None else counted
    sign = np.sign(way[among, 0])
    fraction, total = np.full((3, len(changed), len(splits)), np.nan), np.full((3, len(changed)), np.nan)
    for row, right in enumerate(changed) if jumping.any() else ():
        moved = move(right)
        fraction[:, row, jumping] = _value_and_interval(moved[jumping], way[jumping])
        total[:, row] = _value_and_interval(sign @ moved[among], sign @ way[among])
    return fraction, total


def _value_and_interval(moved: np.ndarray, way: np.ndarray) -> np.ndarray:
    """The ratio [..., 1 + resample] as value, low and high: [3, ...]. A resample without any way says nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.abs(way) > 1e-9, moved / way, np.nan)
    return np.concatenate([ratio[None, ..., 0], np.nanquantile(ratio[..., 1:], [0.025, 0.975], axis=-1)])
