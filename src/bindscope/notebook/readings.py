"""One typed program, read off a model: its answer over training, and where each head looks, as labelled arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
import xarray as xr

from bindscope.measures.evaluation import read_answers
from bindscope.model.transformer import Transformer
from bindscope.studies.one_program import ablate_program
from bindscope.tasks.binding import BindingTask, Program, ask_programs
from bindscope.tasks.binding.program import DIGITS, VOCABULARY
from bindscope.tasks.vocabulary import show_symbol


def predict_program(models: Iterable[tuple[int, Transformer]], program: Program) -> xr.Dataset:
    """What models at some steps answer: ``probability`` over (step, output)."""
    batch = ask_programs([program])
    steps: list[int] = []
    rows: list[np.ndarray] = []
    for step, model in models:
        logits = torch.from_numpy(read_answers(model, batch)[0]).double()  # [output]
        steps.append(step)
        rows.append(logits.softmax(0).numpy())
    outputs = [show_symbol(symbol) for symbol in VOCABULARY.symbols[: len(rows[0])]]
    dataset = xr.Dataset({"probability": (("step", "output"), np.array(rows), {"units": "share"})})
    return dataset.assign_coords(step=steps, output=outputs).assign_attrs(describe_program(program))


def read_attention(model: Transformer, task: BindingTask, program: Program) -> xr.Dataset:
    """Where each head looks: ``pattern`` over (layer, head, query, key)."""
    patterns = np.stack(ablate_program(model, task, program).patterns)
    dataset = xr.Dataset({"pattern": (("layer", "head", "query", "key"), patterns, {"units": "share"})})
    tokens = [show_symbol(symbol) for symbol in program.text]
    return dataset.assign_coords(token=("query", tokens)).assign_attrs(describe_program(program))


def describe_program(program: Program) -> dict[str, str | int]:
    """What a dataset about one program says of it."""
    return {"program": program.text.replace("\n", ";"), "answer": DIGITS[program.answer], "depth": program.depth}
