"""One typed sum: where each layer of a model attends, what it answers, and where the operands' values stand.

>>> dataset = attention_of(run.checkpoint(6000), task, task.parse("c=1 b=17 | b+19"))
>>> dataset.pattern.sel(layer=2).isel(query=ANSWER_POSITION)   # where `=` attends in the second layer
>>> dataset.probability.sel(output="36")
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, OPERAND_POSITIONS

SHOWN = {"PAD": "·"}  # tokens that stand shorter in a figure than in the vocabulary


@torch.no_grad()
def attention_of(model: Transformer, task: AssignAddTask, tokens: np.ndarray) -> xr.Dataset:
    """``pattern`` over (layer, query, key) and ``probability`` over (output) for one sequence of tokens [16].

    Layers count from 1, as in the names of the circuit's forms. The true answer, the columns of the operands
    (``operand_position``) and of their numbers (``value_position``), and the numbers themselves (``value``) are beside
    them.
    """
    if model.config.n_heads != 1:
        raise BindscopeError(
            f"one map a layer is drawn for models of one head; this one has {model.config.n_heads} heads a layer."
        )
    row, layers = torch.from_numpy(np.asarray(tokens, np.int64).reshape(1, -1)), range(model.config.n_layers)
    sums = task.sequences
    located = sums.locate(row[0].numpy())
    trace = run(model, row, [Site("pattern", layer, 0) for layer in layers])
    patterns = np.stack(
        [to_host(trace[Site("pattern", layer, 0)].reshape(row.shape[1], -1)).numpy() for layer in layers]
    )
    fractions = to_host(trace.logits[0, ANSWER_POSITION]).double().softmax(-1).numpy()
    symbols = [SHOWN.get(symbol, symbol) for symbol in task.vocabulary.decode(row[0].tolist())]
    return xr.Dataset(
        {
            "pattern": (("layer", "query", "key"), patterns.astype(np.float32), {"units": "fraction"}),
            "probability": ("output", fractions, {"units": "fraction"}),
        },
        {
            "layer": [layer + 1 for layer in layers],
            "query": np.arange(row.shape[1]),
            "key": np.arange(row.shape[1]),
            "token": ("query", symbols),
            "key_token": ("key", symbols),
            "output": task.vocabulary.shown(len(fractions)),
            "operand_position": ("operand", [operand.position for operand in located.operands]),
            "value_position": ("operand", [operand.value_position for operand in located.operands]),
            "value": ("operand", [operand.value for operand in located.operands]),
        },
        {"text": sums.render(row[0].numpy()), "answer": str(located.answer)},
    )


def attention_over_steps(
    models: Iterable[tuple[int, Transformer]], task: AssignAddTask, tokens: np.ndarray
) -> xr.Dataset:
    """``attention_of`` at several steps, over (step, …)."""
    parts = [attention_of(model, task, tokens).assign_coords(step=step) for step, model in models]
    if not parts:
        raise BindscopeError("no checkpoint was saved yet, so there is no model to give a sum to.")
    return xr.concat(parts, "step", data_vars="all", coords="minimal", compat="override")


def predict_sum(models: Iterable[tuple[int, Transformer]], task: AssignAddTask, tokens: np.ndarray) -> xr.Dataset:
    """What models at some steps, of whatever shape, answer: ``probability`` over (step, output).

    >>> predict_sum([(6000, run.checkpoint(6000))], task, task.parse("c=1 b=17 | b+19")).probability.sel(output="36")
    """
    batch = task.to_batch(np.asarray(tokens, np.int64).reshape(1, -1))
    steps: list[int] = []
    rows: list[np.ndarray] = []
    for step, model in models:
        logits = torch.from_numpy(read_answers(model, batch)[0]).double()  # [output]
        steps.append(step)
        rows.append(logits.softmax(0).numpy())
    if not steps:
        raise BindscopeError("no checkpoint was saved yet, so there is no model to give a sum to.")
    return xr.Dataset(
        {"probability": (("step", "output"), np.array(rows), {"units": "fraction"})},
        {"step": steps, "output": task.vocabulary.shown(len(rows[0]))},
        {"text": task.render(batch.tokens[0]), "answer": str(int(batch.targets[0, 0]))},
    )


def looks_of_equals(dataset: xr.Dataset) -> xr.Dataset:
    """What `=` gives to the circuit's positions: ``operands`` (layer 1 on columns 13 and 14) and ``values`` (the last layer
    on the operands' numbers), over (operand) and step where there are several.
    """
    equals = dataset.pattern.isel(query=ANSWER_POSITION, drop=True)
    first, last = (equals.isel(layer=index, drop=True) for index in (0, -1))
    numbers = xr.DataArray(dataset.value_position.values, dims="operand")
    operands = xr.DataArray(np.array(OPERAND_POSITIONS), dims="operand")
    looks = {"operands": first.sel(key=operands), "values": last.sel(key=numbers)}
    return xr.Dataset({name: look.drop_vars(["key", "key_token"]) for name, look in looks.items()})
