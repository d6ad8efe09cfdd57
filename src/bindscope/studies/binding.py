"""Study 1, variable binding in symbolic programs (arXiv 2505.20896): its presets.

``binding-paper`` is the paper's own model and training. The three others learn the same task on two CPU cores with
parts that the paper does not have, each an ordinary setting:

1. several queries share one program (``task.queries``, balanced by weights instead of rejection);
2. program lengths vary from batch to batch (``task.min_lines``), evaluation is at full length;
3. attention starts near copying and looking back: embeddings N(0, 1), weights N(0, 1/fan_in), W_O = W_Vᵀ and W_Q = W_K
   (``model.init.mimetic_*``), the first layer's heads prefer the tokens 0, 1, 2, … places back (``offset_bias``);
4. identity scaling of attention scores and head outputs (``model.identity_*``), in ``tiny`` and ``laptop``;
5. AdamW at 5e-4 with β₁ = 0.95 and a short warm-up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bindscope.model.config import InitConfig
from bindscope.runs.config import DatasetConfig, RunConfig
from bindscope.studies.preset import Preset, model_for
from bindscope.tasks.binding import BindingTask
from bindscope.training.config import CheckpointPlan, OptimizerConfig, ScheduleConfig, TrainingConfig

RECIPE_INIT = InitConfig(
    scheme="fan_in", gain=1.0, embedding_std=1.0, mimetic_vo=1.0, mimetic_qk=1.0, offset_bias=4.0, offset_layers=1
)
RECIPE_TRAINING = TrainingConfig(
    steps=20_000,
    batch_size=64,
    optimizer=OptimizerConfig(lr=5e-4, betas=(0.95, 0.999), weight_decay=0.01),
    schedule=ScheduleConfig(kind="linear", warmup_steps=200, final=0.05),
    clip=1.0,
    checkpoints=CheckpointPlan(every=100, per_octave=2),
    stop_at=0.999,
)

TINY_TASK = BindingTask(lines=6, max_depth=3, queries=6, min_lines=2, balance="weights")
LAPTOP_TASK = BindingTask(lines=16, max_depth=4, queries=16, min_lines=2, balance="weights")
PAPER_TASK = BindingTask(lines=16, max_depth=4)

IDENTITY: dict[str, Any] = {"identity_qk": True, "identity_vo": True, "identity_gain": 20.0}
SMALL: dict[str, Any] = {"d_model": 64, "n_heads": 4, "d_head": 16, "d_mlp": 256, "positions": "rope"}

PRESETS = (
    Preset(
        RunConfig(
            name="binding-tiny",
            task=TINY_TASK,
            model=model_for(TINY_TASK, n_layers=4, **SMALL, **IDENTITY, init=RECIPE_INIT),
            training=RECIPE_TRAINING,
        ),
        "The fastest faithful one: 6 lines, depth 3, all three phases in minutes.",
    ),
    Preset(
        RunConfig(
            name="binding-laptop",
            task=LAPTOP_TASK,
            model=model_for(LAPTOP_TASK, n_layers=5, **SMALL, **IDENTITY, init=RECIPE_INIT),
            training=replace(RECIPE_TRAINING, batch_size=32),
        ),
        "The paper's task (16 lines, depth 4) with a model that two cores can train.",
    ),
    Preset(
        RunConfig(
            name="binding-plain",
            task=LAPTOP_TASK,
            model=model_for(
                LAPTOP_TASK,
                n_layers=5,
                d_model=64,
                n_heads=2,
                d_head=32,
                d_mlp=256,
                init=replace(RECIPE_INIT, mimetic_qk=1.3),
            ),
            training=replace(RECIPE_TRAINING, batch_size=32, optimizer=replace(RECIPE_TRAINING.optimizer, lr=3e-4)),
        ),
        "The same task with the paper's plain architecture, which other tools can open.",
    ),
    Preset(
        RunConfig(
            name="binding-paper",
            task=PAPER_TASK,
            model=model_for(
                PAPER_TASK, n_layers=12, n_heads=8, d_head=64, d_model=512, d_mlp=2048, dropout=0.1, bias=False
            ),
            training=TrainingConfig(
                batch_size=64,
                data="fixed",
                epochs=15,
                loss="all",
                optimizer=OptimizerConfig(lr=1e-4, betas=(0.95, 0.999), weight_decay=1e-4),
                schedule=ScheduleConfig(kind="linear", warmup_steps=750, final=0.0),
                checkpoints=CheckpointPlan(every=200, per_octave=0),
                evaluate_every=200,
            ),
            dataset=DatasetConfig(train=450_000, validation=1_000, test=49_000),
        ),
        "The paper's own model and training: 450,000 programs, 15 epochs; wants a GPU.",
    ),
)
