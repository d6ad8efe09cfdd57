"""How far a transplant carries a model towards its donor, on the same sums for every part.

>>> asked = ask_pools(task, rng, n=200)
>>> measure_transplants(run.checkpoint(5300), run.checkpoint(5400), ["QK1", "routing"], asked).share
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.stats.shares import share_variables
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.task import Batch

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

OnProgress = Callable[[int, int], None]
LEAST_JUMP = 0.1  # between receiver and donor: below it, a share of the way would be noise
N_RESAMPLES = 500
TOGETHER = " + "  # joins the names of parts that are transplanted together


@dataclass(frozen=True, eq=False)
class Asked:
    """Sums of several pools as one batch."""

    batch: Batch
    pools: Mapping[str, slice]

    def with_pool(self, name: str, batch: Batch, task: AssignAddTask) -> Asked:
        """The same with one more pool behind the others."""
        tokens = np.concatenate([self.batch.tokens, batch.tokens])
        return Asked(task.to_batch(tokens), {**self.pools, name: slice(len(self.batch), len(tokens))})


def ask_pools(task: AssignAddTask, rng: np.random.Generator, n: int) -> Asked:
    """The nine pools, ``n`` sums each."""
    drawn = task.sample_evaluation(rng, n)
    tokens = np.concatenate([batch.tokens for batch in drawn.values()])
    pools = {name: slice(place * n, (place + 1) * n) for place, name in enumerate(drawn)}
    return Asked(task.to_batch(tokens), pools)


def measure_transplants(
    receiver: Transformer,
    donor: Transformer,
    rows: Sequence[str],
    asked: Asked,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> xr.Dataset:
    """Over (part, pool): ``accuracy`` of the receiver with each row's parts of the donor, and ``share``, how far this is
    of the way from the receiver's accuracy (0) to the donor's (1), with 95 % intervals (Wilson; bootstrap over sums).

    ``total_share`` (part) takes all pools together that differ by ``LEAST_JUMP`` or more; in the others ``share`` is
    missing. Parts of a row such as ``QK1 + variables`` are transplanted together.
    """
    ends = answer_right(receiver, asked.batch), answer_right(donor, asked.batch)  # [sum] each
    changed = []
    for done, row in enumerate(rows, start=1):
        changed.append(answer_transplanted(receiver, donor, row, asked.batch))
        if on_progress is not None:
            on_progress(done, len(rows))
    return label_transplants(rows, *ends, np.array(changed).reshape(len(rows), -1), asked.pools, seed)


def answer_right(model: Transformer, batch: Batch) -> np.ndarray:
    """Which sums a model answers correctly: [sum] bool."""
    from bindscope.measures.evaluation import read_answers

    return read_answers(model, batch).argmax(1) == batch.targets[:, 0]


def answer_transplanted(
    receiver: Transformer, donor: Transformer, row: str, batch: Batch, shown: Batch | None = None
) -> np.ndarray:
    """Which sums the receiver answers correctly with the parts of a row: [sum] bool."""
    from bindscope.interventions.transplant import read_transplanted

    outputs = read_transplanted(receiver, donor, split_row(row), batch, shown)
    return outputs.argmax(1) == batch.targets[:, 0]


def split_row(row: str) -> list[str]:
    """``QK1 + variables`` as its parts."""
    return [name.strip() for name in row.split("+")]


def label_transplants(
    rows: Sequence[str],
    receiver: np.ndarray,
    donor: np.ndarray,
    changed: np.ndarray,
    pools: Mapping[str, slice],
    seed: int = 0,
    counted: Collection[str] | None = None,
) -> xr.Dataset:
    """The dataset of ``measure_transplants`` from who was right: receiver and donor [sum], changed [row, sum]."""
    n = np.array([pool.stop - pool.start for pool in pools.values()])
    hits = np.array([[right[pool].sum() for pool in pools.values()] for right in changed]).reshape(len(rows), len(n))
    variables: dict[str, Any] = share_variables("accuracy", ["part", "pool"], hits, n)
    for name, right in (("receiver", receiver), ("donor", donor)):
        hits = np.array([right[pool].sum() for pool in pools.values()])
        variables |= share_variables(f"{name}_accuracy", ["pool"], hits, n)
    return label_shares(rows, receiver, donor, changed, pools, seed, counted).assign(**variables, n=("pool", n))


def label_shares(
    rows: Sequence[str],
    receiver: np.ndarray,
    donor: np.ndarray,
    changed: np.ndarray,
    pools: Mapping[str, slice],
    seed: int = 0,
    counted: Collection[str] | None = None,
) -> xr.Dataset:
    """``share`` (part, pool) and ``total_share`` (part) alone; the latter over the pools ``counted``, if given."""
    rng, among = np.random.default_rng([seed, 5]), None
    if counted is not None:
        among = np.array([name in counted for name in pools])
    share, total = _shares_of_the_way(receiver, donor, changed, list(pools.values()), rng, among)
    variables: dict[str, Any] = {}
    for place, end in enumerate(("", "_low", "_high")):
        variables[f"share{end}"] = (("part", "pool"), share[place], {"units": "share"})
        variables[f"total_share{end}"] = ("part", total[place], {"units": "share"})
    return xr.Dataset(variables, {"part": list(rows), "pool": list(pools)})


def _shares_of_the_way(
    receiver: np.ndarray,
    donor: np.ndarray,
    changed: np.ndarray,
    pools: Sequence[slice],
    rng: np.random.Generator,
    counted: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """(value, low, high) of each row's share in each pool, [3, row, pool], and over the pools that jump, [3, row]."""

    def resample(pool: slice) -> np.ndarray:
        """The whole pool, then N_RESAMPLES of it, as how often each sum counts: [1 + resample, sum]."""
        n = pool.stop - pool.start
        return np.concatenate([np.ones((1, n)), rng.multinomial(n, np.full(n, 1 / n), N_RESAMPLES)]) / n

    counts = [resample(pool) for pool in pools]

    def move(right: np.ndarray) -> np.ndarray:
        """By how much accuracy differs from the receiver's: [pool, 1 + resample]."""
        difference = right.astype(float) - receiver
        return np.array([count @ difference[pool] for count, pool in zip(counts, pools)])

    way = move(donor)
    jumping = np.abs(way[:, 0]) >= LEAST_JUMP - 1e-9
    among = jumping if counted is None else counted
    sign = np.sign(way[among, 0])
    share, total = np.full((3, len(changed), len(pools)), np.nan), np.full((3, len(changed)), np.nan)
    for row, right in enumerate(changed) if jumping.any() else ():
        moved = move(right)
        share[:, row, jumping] = _value_and_interval(moved[jumping], way[jumping])
        total[:, row] = _value_and_interval(sign @ moved[among], sign @ way[among])
    return share, total


def _value_and_interval(moved: np.ndarray, way: np.ndarray) -> np.ndarray:
    """The ratio [..., 1 + resample] as value, low and high: [3, ...]. A resample without any way says nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.abs(way) > 1e-9, moved / way, np.nan)
    return np.concatenate([ratio[None, ..., 0], np.nanquantile(ratio[..., 1:], [0.025, 0.975], axis=-1)])
