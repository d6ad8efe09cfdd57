"""Result ``attention``: the three looks of the circuit at every checkpoint, and the mean maps of the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.intervals import bootstrap_interval
from bindscope.measures.stats.shares import share_variables
from bindscope.studies.framework.every_step import measure_every_step, small, untrained_model
from bindscope.studies.framework.results import Context, Result, every_step

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.assign_add import AssignAddTask
    from bindscope.tasks.task import Batch

N_SEQUENCES = 150  # of each of the nine pools
N_RESAMPLES = 400
N_MAPPED = 2  # times as many of each form, for the mean maps
LAYOUT = "_ a=0 _ b=1 _ _ _ c=2 _ | {}"  # where assignments stand in the mean maps; names and numbers are drawn
FORMS = {"number + number": "3+4", "variable + number": "b+4", "number + variable": "3+c", "two variables": "b+c"}


def compute_attention(context: Context) -> xr.Dataset:
    """Over (step, pool, look) ``share`` and ``mass``, and over (step, look) those of all pools with intervals,
    ``overall_share`` and ``overall_mass``; ``shuffled_share`` and ``shuffled_mass`` hold the numbers' columns
    of another sequence against layer 2; ``untrained_…`` are those of a fresh model. ``mean_pattern`` over (form, layer,
    query, key) is the last checkpoint's.
    """
    task: Any = context.run.config.task
    rng = context.rng
    pools = task.sample_evaluation(rng, context.n)
    other = {name: rng.permutation(len(batch)) for name, batch in pools.items()}

    def measure(model: Transformer) -> xr.Dataset:
        return describe_looks(model, task, pools, other)

    dataset = measure_every_step(context, measure)
    for name, variable in measure(untrained_model(context)).data_vars.items():
        dataset[f"untrained_{name}"] = variable
    dataset = dataset.merge(map_forms(context.run.checkpoint("last"), task, rng, N_MAPPED * context.n))
    dataset.attrs = {"n": context.n, "seed": context.seed}
    return dataset


def describe_looks(
    model: Transformer, task: AssignAddTask, pools: dict[str, Batch], other: dict[str, np.ndarray]
) -> xr.Dataset:
    """Share and mass of each look in each pool, how much of that a shuffled sequence has, and accuracy."""
    from bindscope.measures.arithmetic.attention import LOOKS, look_at, measure_looks
    from bindscope.measures.evaluation import read_answers

    found = {name: measure_looks(model, task, batch.tokens) for name, batch in pools.items()}
    kept = np.array([[looks.kept[look] for look in LOOKS] for looks in found.values()])  # [pool, look, sequence]
    mass = np.array([[looks.mass[look] for look in LOOKS] for looks in found.values()])
    shuffled = [
        look_at(found[name].equals, task.sequences.value_positions(batch.tokens[other[name]]))
        for name, batch in pools.items()
    ]
    right = [(read_answers(model, batch).argmax(1) == batch.targets[:, 0]).mean() for batch in pools.values()]
    by_pool: dict[str, Any] = {"share": kept.mean(2), "mass": mass.mean(2), "accuracy": right}
    by_pool |= {"shuffled_share": [k.mean() for k, _ in shuffled], "shuffled_mass": [m.mean() for _, m in shuffled]}
    variables: dict[str, Any] = {
        name: (("pool", "look")[: np.ndim(values)], small(values), {"units": "share"})
        for name, values in by_pool.items()
    }
    n = kept.shape[0] * kept.shape[2]
    variables |= share_variables("overall_share", ("look",), kept.mean((0, 2)) * n, n)
    variables |= _overall_mass(np.moveaxis(mass, 1, 0).reshape(len(LOOKS), n))
    return xr.Dataset(variables, {"pool": list(pools), "look": list(LOOKS)})


def _overall_mass(mass: np.ndarray) -> dict[str, Any]:
    """Means of mass [look, sequence] with bootstrap intervals."""
    rng = np.random.default_rng(0)
    ends = np.array([bootstrap_interval(row, rng, n_resamples=N_RESAMPLES) for row in mass])
    values = {"": mass.mean(1), "_low": ends[:, 0], "_high": ends[:, 1]}
    return {f"overall_mass{suffix}": (("look",), small(value), {"units": "share"}) for suffix, value in values.items()}


def map_forms(model: Transformer, task: AssignAddTask, rng: np.random.Generator, n: int) -> xr.Dataset:
    """Mean maps of sums whose assignments stand in the same columns, with names and numbers drawn again each time."""
    from bindscope.measures.arithmetic.reading import read_sums

    sites = [f"L{layer}.H0.pattern" for layer in range(model.config.n_layers)]
    maps = []
    for sum_text in FORMS.values():
        tokens = fill_layout(task, task.parse(LAYOUT.format(sum_text)), rng, n)
        patterns = read_sums(model, tokens, sites)  # layer → [batch, 1, query, key]
        maps.append([pattern.reshape(len(tokens), *pattern.shape[-2:]).mean(0) for pattern in patterns])
    coordinates: dict[str, Any] = {
        "form": list(FORMS),
        "layer": np.arange(1, len(sites) + 1),
        "token": (("form", "query"), [_columns(task, text) for text in FORMS.values()]),
    }
    pattern = (("form", "layer", "query", "key"), small(maps), {"units": "share"})
    return xr.Dataset({"mean_pattern": pattern}, coordinates)


def fill_layout(task: AssignAddTask, row: np.ndarray, rng: np.random.Generator, n: int) -> np.ndarray:
    """``n`` copies of a sequence [16] in which every name and every number is drawn again, the same name as the same."""
    first = task.sequences.first_variable_token
    names = np.unique(row[row >= first])
    drawn = np.argsort(rng.random((n, task.n_variables)), axis=1)[:, : len(names)] + first
    rows = np.where(row < task.modulus, rng.integers(task.modulus, size=(n, len(row))), row)
    for place, name in enumerate(names):
        rows[:, row == name] = drawn[:, place : place + 1]
    return rows


def _columns(task: AssignAddTask, sum_text: str) -> list[str]:
    """What stands in each column of the layout: v, n, or the token itself."""
    row = task.parse(LAYOUT.format(sum_text))
    symbols = task.vocabulary.decode(row.tolist())
    kinds = {"PAD": "·"} | {str(number): "n" for number in range(task.modulus)}
    return [kinds.get(symbol, symbol) for symbol in symbols]


RESULTS = (
    Result("attention", "where the layers look", compute_attention, n=N_SEQUENCES, steps=every_step, grows=True,
           passes=18),
)  # fmt: skip
