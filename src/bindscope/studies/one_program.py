"""One program, perhaps without some parts of the model: where every head looks, and the answer before and after.

>>> ablated = ablate_program(model, task, task.parse("a=5\\nb=a\\n#b:"), ["L2.H1"], "zero")
>>> ablated.after.argmax(), ablated.patterns[3].shape
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bindscope.interventions.ablation import Kind, ablation_edits
from bindscope.interventions.answers import Edits
from bindscope.model.run import run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding.program import Program
from bindscope.tasks.binding.programs import ask_programs, ask_questions
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


@torch.no_grad()
def ablate_program(
    model: Transformer, task: BindingTask, program: Program, sites: Sequence[str] = (), kind: Kind = "zero"
) -> Ablated:
    """Run a program without these parts: their output is zero, or their mean over other programs of this length."""
    batch = ask_programs([program])
    tokens, at = torch.from_numpy(batch.tokens), int(batch.target_positions[0])
    edits: Edits = {}
    if sites:
        reference = _other_programs(task, program.n_lines) if kind == "mean" else None
        edits = ablation_edits(model, batch, sites, kind, reference=reference)(slice(0, 1))
    wanted = [Site("pattern", layer) for layer in range(model.config.n_layers)]
    trace = run(model, tokens, wanted, edits)
    before = model(tokens)[0, at]
    after = trace.logits[0, at] if sites else before
    patterns = tuple(trace[site][0].numpy() for site in wanted)
    return Ablated(patterns, before.double().softmax(-1).numpy(), after.double().softmax(-1).numpy())


def _other_programs(task: BindingTask, n_lines: int) -> Batch:
    rng = np.random.default_rng(SEED)
    return ask_questions(*task.sample_questions(rng, N_REFERENCE, n_lines))
