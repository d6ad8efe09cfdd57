"""Every intervention compares runs that differ in one thing, so none of them runs a model that drops at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.interventions.ablation import ablate_heads, ablate_mlps, ablate_together
from bindscope.interventions.attribution import attribute_heads, attribute_mlps, attribute_positions, attribute_residual
from bindscope.interventions.circuit import Circuit, Move, ablate_circuit, find_circuit, patch_circuit
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.grids import head_grid, mlp_grid, position_grid, residual_grid
from bindscope.interventions.knockout import knock_out_each, knock_out_edges, knock_out_grid, name_edge
from bindscope.interventions.patching import patch_sites
from bindscope.interventions.paths import patch_path
from bindscope.interventions.transplant import read_transplanted
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.runs.config import fit_model
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding.structure import named_positions
from interventions.causal_cases import random_model, sample_pairs

PAIRS = sample_pairs(4, 2)
CONTRAST, POSITIONS, BATCH = contrast_pairs(PAIRS), named_positions(PAIRS), PAIRS.base
EDGE = name_edge("colon>query", POSITIONS)
CIRCUIT = Circuit((Move(0, 0, "rhs 1", "query"),), 4, "success", 0.5, 0.5)

ENTRY_POINTS: dict[str, Callable[[Transformer], object]] = {
    "residual grid": lambda model: residual_grid(model, CONTRAST),
    "position grid": lambda model: position_grid(model, CONTRAST, POSITIONS),
    "head grid": lambda model: head_grid(model, CONTRAST),
    "MLP grid": lambda model: mlp_grid(model, CONTRAST),
    "patch": lambda model: patch_sites(model, CONTRAST, ["L1.H0"]),
    "path": lambda model: patch_path(model, CONTRAST, "L0.H0", "L2.H0.v"),
    "zero ablation of heads": lambda model: ablate_heads(model, BATCH, kind="zero"),
    "mean ablation of heads": lambda model: ablate_heads(model, BATCH),
    "ablation of MLPs": lambda model: ablate_mlps(model, BATCH, kind="zero"),
    "ablation together": lambda model: ablate_together(model, BATCH, ["L1.H0"], "zero"),
    "knock-out": lambda model: knock_out_edges(model, BATCH, [EDGE]),
    "knock-out each": lambda model: knock_out_each(model, BATCH, [EDGE]),
    "knock-out grid": lambda model: knock_out_grid(model, BATCH, EDGE),
    "attribution to the stream": lambda model: attribute_residual(model, CONTRAST),
    "attribution to positions": lambda model: attribute_positions(model, CONTRAST, POSITIONS),
    "attribution to heads": lambda model: attribute_heads(model, CONTRAST),
    "attribution to MLPs": lambda model: attribute_mlps(model, CONTRAST),
    "circuit": lambda model: find_circuit(model, CONTRAST, POSITIONS),
    "patched circuit": lambda model: patch_circuit(model, CONTRAST, POSITIONS, CIRCUIT),
    "ablated circuit": lambda model: ablate_circuit(model, BATCH, POSITIONS, CIRCUIT, kind="zero"),
}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_a_model_in_training_mode_with_dropout_is_refused(name: str) -> None:
    dropping = random_model(dropout=0.1)
    with pytest.raises(BindscopeError, match=r"drops activations at random; call model\.eval\(\) first\.$"):
        ENTRY_POINTS[name](dropping.train())
    ENTRY_POINTS[name](dropping.eval())


def test_a_source_model_that_drops_is_refused_too() -> None:
    model, dropping = random_model(dropout=0.1), random_model(seed=1, dropout=0.1).train()
    for intervene in (
        lambda: residual_grid(model, CONTRAST, source_model=dropping),
        lambda: patch_sites(model, CONTRAST, ["L1.H0"], source_model=dropping),
        lambda: patch_path(model, CONTRAST, "L0.H0", "L2.H0.v", source_model=dropping),
    ):
        with pytest.raises(BindscopeError, match="drops activations"):
            intervene()


@pytest.mark.parametrize("part", ["QK1", "pattern 1"])
def test_a_transplant_between_models_that_drop_is_refused(part: str) -> None:
    task = AssignAddTask(modulus=11, n_variables=5)
    shape = ModelConfig(1, 1, n_layers=2, n_heads=1, d_model=16, d_head=16, d_mlp=16, positions="learned", dropout=0.1)
    receiver, donor = (Transformer(fit_model(shape, task)) for _ in range(2))
    batch = task.sample_batch(np.random.default_rng(0), 8)
    with pytest.raises(BindscopeError, match="drops activations"):
        read_transplanted(receiver.train(), donor.eval(), [part], batch)
    if part.startswith("pattern"):
        with pytest.raises(BindscopeError, match="drops activations"):
            read_transplanted(receiver.eval(), donor.train(), [part], batch)
    read_transplanted(receiver.eval(), donor.eval(), [part], batch)


def test_training_mode_alone_is_no_obstacle() -> None:
    plain = random_model()
    assert residual_grid(plain.train(), CONTRAST).equals(residual_grid(plain.eval(), CONTRAST))
