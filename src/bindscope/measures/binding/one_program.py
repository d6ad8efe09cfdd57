"""One program: a model's answer over training, and perhaps without some parts, where every head looks.

>>> ablated = ablate_program(model, task, task.parse("a=5\\nb=a\\n#b:"), ["L2.H1"], "zero")
>>> ablated.after.argmax(), ablated.patterns[3].shape
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from bindscope.interventions.ablation import Kind, ablation_edits
from bindscope.interventions.answers import Edits
from bindscope.measures.binding.patching import count_columns, locate_sites
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding.positions import chain_positions
from bindscope.tasks.binding.program import DIGITS, Program
from bindscope.tasks.binding.rendered import columns_of
from bindscope.tasks.binding.task import BindingTask
from bindscope.tasks.task import Batch

N_REFERENCE = 64  # programs of the same length that means are taken over
SEED = 0


@dataclass(frozen=True, eq=False)
class Ablated:
    """What the model does with a program."""

    patterns: tuple[np.ndarray, ...]  # layer → [head, query, key], without the ablated parts
    before: np.ndarray  # [output]: probabilities of the whole model
    after: np.ndarray  # [output]: and without the ablated parts


def predict_program(models: Iterable[tuple[int, Transformer]], task: BindingTask, program: Program) -> xr.Dataset:
    """What models at some steps answer: ``probability`` over (step, output); ``likeliest`` where not every output is shown."""
    batch = task.to_batch(program)
    steps: list[int] = []
    rows: list[np.ndarray] = []
    for step, model in models:
        logits = torch.from_numpy(read_answers(model, batch)[0]).double()  # [output]
        steps.append(step)
        rows.append(logits.softmax(0).numpy())
    shown = task.gather_outputs(np.array(rows))
    dataset = xr.Dataset({"probability": (("step", "output"), shown, {"units": "fraction"})})
    dataset = dataset.assign_coords(step=steps, output=task.show_outputs(len(rows[0])))
    if shown.shape[1] < len(rows[0]):  # outputs that are shown together hide which of them is on top
        dataset["likeliest"] = ("step", [task.name_output(int(row.argmax())) for row in rows])
    line_1 = DIGITS[program.values[0]]
    return dataset.assign_attrs(answer=DIGITS[program.answer], line_1=line_1, depth=program.depth)


def attention_dataset(patterns: Sequence[np.ndarray], task: BindingTask, program: Program) -> xr.Dataset:
    """Where each head attends: ``pattern`` over (layer, head, query, key), of each position at the last of its tokens."""
    columns = columns_of(task.to_batch(program))
    shown = np.stack(patterns)[:, :, columns[:, None], columns]
    dataset = xr.Dataset({"pattern": (("layer", "head", "query", "key"), shown, {"units": "fraction"})})
    dataset = dataset.assign_coords(token=("query", task.show_tokens(program)))
    return dataset.assign_attrs(answer=DIGITS[program.answer])


@torch.no_grad()
def ablate_program(
    model: Transformer, task: BindingTask, program: Program, sites: Sequence[str] = (), kind: Kind = "zero"
) -> Ablated:
    """Run a program without these parts: their output is zero, or their mean over other programs of this length."""
    batch = task.to_batch(program)
    tokens, at = torch.from_numpy(batch.tokens), int(batch.target_positions[0])
    edits: Edits = {}
    if sites:
        reference = other_programs(task, program.n_lines) if kind == "mean" else None
        columns = columns_of(batch)
        found, positions = locate_sites(count_columns(sites, columns), named_columns(program, columns))
        edits = ablation_edits(model, batch, found, kind, positions=positions, reference=reference)(slice(0, 1))
    wanted = [Site("pattern", layer) for layer in range(model.config.n_layers)]
    trace = run(model, tokens, wanted, edits)
    before = model(tokens)[0, at]
    after = trace.logits[0, at] if sites else before
    patterns = tuple(to_host(trace[site][0]).numpy() for site in wanted)
    return Ablated(patterns, to_host(before).double().softmax(-1).numpy(), to_host(after).double().softmax(-1).numpy())


def named_columns(program: Program, columns: np.ndarray) -> dict[str, np.ndarray]:
    """The columns [1] of the named positions of a program's queried chain.

    >>> {name: int(column[0]) for name, column in named_columns(parse_program("a=5\\nb=a\\n#b:"), np.arange(11)).items()}
    {'lhs 1': 0, 'rhs 1': 2, 'lhs 2': 4, 'rhs 2': 6, 'query': 9, 'colon': 10}
    """
    *right, query, colon = chain_positions(program)
    sides = [(f"{side} {hop}", at - back) for hop, at in enumerate(right, 1) for side, back in (("lhs", 2), ("rhs", 0))]
    return {name: columns[[at]] for name, at in (*sides, ("query", query), ("colon", colon))}


def other_programs(task: BindingTask, n_lines: int) -> Batch:
    rng = np.random.default_rng(SEED)
    return task.ask(*task.sample_questions(rng, N_REFERENCE, n_lines))
