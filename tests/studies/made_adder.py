"""A model of modular addition whose mechanism is known because its weights are written: layer 2 attends to both operands alike, and
each neuron of its MLP is one Fourier component of their sum, with the output phase of the analytic network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from bindscope.model.transformer import Transformer
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.manifest import Manifest
from bindscope.studies.framework.preset import model_for
from bindscope.tasks.assign_add import AssignAddTask

TASK = AssignAddTask(modulus=11, n_variables=4)
FREQUENCIES = np.arange(1, 6)
N_NEURONS, D_COMPONENTS, D_MODEL = (
    200,
    10,
    24,
)  # components of the operands, components of the answer, four more for positions
CONFIG = model_for(
    TASK,
    n_layers=2,
    n_heads=1,
    d_model=D_MODEL,
    d_head=D_MODEL,
    d_mlp=N_NEURONS,
    activation="relu",
    positions="learned",
    norm="none",
    bias=False,
    mlp_layers=(1,),
)


def make_adder() -> Transformer:
    """Adds all pairs; its neurons have frequencies 1 to 5 in turn and phases spread over the circle."""
    model = Transformer(CONFIG)
    angles = 2 * np.pi * np.outer(np.arange(TASK.modulus), FREQUENCIES) / TASK.modulus
    components = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)  # [number, component]
    position = np.arange(N_NEURONS) % len(FREQUENCIES)
    phases = 2 * np.pi * np.arange(N_NEURONS) / N_NEURONS * 7
    up, down = np.zeros((N_NEURONS, D_MODEL)), np.zeros((D_MODEL, N_NEURONS))
    neurons = np.arange(N_NEURONS)
    up[neurons, position], up[neurons, position + 5] = np.cos(phases), -np.sin(phases)  # cos(angle + phase)
    down[D_COMPONENTS + position, neurons], down[D_COMPONENTS + position + 5, neurons] = (
        np.cos(2 * phases),
        -np.sin(2 * phases),
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.W_E[: TASK.modulus, :D_COMPONENTS] = torch.from_numpy(components)
        model.pos_embed[15, 20] = 1
        model.pos_embed[[13, 14], 21] = 1
        model.W_U[D_COMPONENTS : 2 * D_COMPONENTS] = torch.from_numpy(components.T)
        attention, mlp = model.layers[1].attention, model.layers[1].mlp
        attention.W_Q[0, 20, 0] = attention.W_K[0, 21, 0] = 20
        attention.W_V[0, :D_COMPONENTS, :D_COMPONENTS] = attention.W_O[0, :D_COMPONENTS, :D_COMPONENTS] = torch.eye(
            D_COMPONENTS
        )
        mlp.up.weight[:] = torch.from_numpy(up)
        mlp.down.weight[:] = torch.from_numpy(down)
    return model.eval()


def make_sums_run(path: Path, steps: tuple[int, ...] = (0, 50, 100), adds_from: int = 100) -> Run:
    """Untrained weights until ``adds_from``, then the adder."""
    manifest = Manifest("adder", config_to_mapping(RunConfig("adder", TASK, CONFIG)), {}, 100, "finished", thinned=True)
    run = Run.create(path, manifest)
    for step in steps:
        fresh = Transformer(CONFIG, torch.Generator().manual_seed(step))
        run.write_checkpoint(step, (make_adder() if step >= adds_from else fresh).state_dict())
    return Run.open(path)
