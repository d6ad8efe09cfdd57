"""The presets of study 1, variable binding in symbolic programs (arXiv 2505.20896).

``binding-paper`` is the paper's own model and training. The others learn the same task on two CPU cores with parts that
the paper does not have, each an ordinary setting; docs/recipe.md takes them apart. Common to them:

1. several queries share one program (``task.queries``, balanced by weights instead of rejection);
2. program lengths vary from batch to batch (``task.min_lines``), evaluation is at full length;
3. attention starts near matching and copying: weights N(0, 1/fan_in), embeddings N(0, 1), W_O = W_Vᵀ and
   W_Q = W_K (``model.init.mimetic_*``), the first layer's heads prefer the tokens some positions back (``offset_bias``);
4. AdamW with β₁ = 0.95 and a short warm-up.

``binding-laptop`` adds identity scaling of attention scores and head outputs. ``binding-tiny`` and ``binding-plain`` do
without, so that other tools can open them; their attention starts with a relay and a quarter of its dimensions rotating,
and their unembedding starts tied (``model.init.relay_offset``, ``model.rope_fraction``, ``model.init.tied_start``).

``binding-neutral`` and ``binding-deep`` start from plain random weights, query and key biases included: nothing of the
mechanism is supplied. What is scheduled is the data (``task.curriculum``): one batch in four is the whole task from the
beginning, the others begin with four letters on two lines. Scheduled programs are chains side by side, short ones extended
first: where chains branch, or a constant is left that nothing refers to, short programs are answered by a shortcut.
``binding-reassign`` learns shorter programs, in which variables are assigned again, in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bindscope.model.config import InitConfig
from bindscope.runs.config import DatasetConfig, RunConfig
from bindscope.studies.framework.preset import Preset, model_for
from bindscope.tasks.binding import BindingTask, Curriculum
from bindscope.training.config import CheckpointPlan, OptimizerConfig, ScheduleConfig, TrainingConfig

RECIPE_INIT = InitConfig(scheme="fan_in", mimetic_vo=1.0, mimetic_qk=1.0, offset_bias=4.0)
RELAY_INIT = replace(
    RECIPE_INIT, mimetic_qk=1.25, orthogonal=True, offset_bias=8.0, offsets=(1, 2), relay_offset=2, tied_start=0.6
)
RECIPE_TRAINING = TrainingConfig(
    steps=5_000,
    batch_size=64,
    optimizer=OptimizerConfig(lr=5e-4, betas=(0.95, 0.999), weight_decay=0.01),
    schedule=ScheduleConfig(kind="linear", warmup_steps=200, final=0.02),
    clip=1.0,
    checkpoints=CheckpointPlan(every=100, per_octave=2),
    evaluation_size=4_000,
    stop_at=0.999,
)
RELAY_TRAINING = replace(RECIPE_TRAINING, optimizer=replace(RECIPE_TRAINING.optimizer, lr=7e-4, betas=(0.95, 0.99)))

NEUTRAL_INIT = InitConfig(scheme="fan_in", qk_bias_std=0.5)
NEUTRAL_TRAINING = replace(
    RECIPE_TRAINING,
    steps=6_000,
    batch_size=16,
    optimizer=replace(RECIPE_TRAINING.optimizer, lr=7e-4),
    schedule=ScheduleConfig(kind="linear", warmup_steps=200, final=0.02, hold_stages=True, fall_steps=2_400),
    checkpoints=CheckpointPlan(every=50, per_octave=3),
    evaluation_size=2_000,
    evaluate_early=True,
    stop_at=None,
)

TINY_TASK = BindingTask(lines=6, max_depth=3, queries=6, min_lines=2, balance="weights")
LAPTOP_TASK = BindingTask(lines=16, max_depth=4, queries=16, min_lines=2, balance="weights")
SIDE_BY_SIDE = Curriculum(letters_at=4, full=0.25, exponent=-3.0, side_by_side=True, p_constant=0.2)
NEUTRAL_TASK = replace(LAPTOP_TASK, min_lines=None, curriculum=SIDE_BY_SIDE)
REASSIGN_TASK = replace(NEUTRAL_TASK, lines=8, max_depth=3, queries=8, reassign=0.3)
PAPER_TASK = BindingTask(lines=16, max_depth=4)

IDENTITY: dict[str, Any] = {"identity_qk": True, "identity_vo": True, "identity_gain": 20.0}
RELAY: dict[str, Any] = {
    "d_model": 64, "n_heads": 2, "d_head": 32, "d_mlp": 128, "rope_fraction": 0.25, "rope_base": 10.0, "init": RELAY_INIT,
}  # fmt: skip
NEUTRAL: dict[str, Any] = {"d_head": 32, "rope_fraction": 0.5, "rope_base": 100.0, "init": NEUTRAL_INIT}
SMALL: dict[str, Any] = {"d_model": 64, "n_heads": 4, "d_head": 16, "d_mlp": 256, "positions": "rope"}

PRESETS = (
    Preset(
        RunConfig(
            name="binding-tiny",
            task=TINY_TASK,
            model=model_for(TINY_TASK, n_layers=4, **{**RELAY, "init": replace(RELAY_INIT, tied_start=1.0)}),
            training=replace(RELAY_TRAINING, steps=3_000, evaluate_every=25, evaluation_size=1_500, stop_at=0.99),
        ),
        "The fastest: 6 lines, depth 3, all three phases in minutes, from a start that supplies most of the mechanism.",
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
            model=model_for(LAPTOP_TASK, n_layers=6, **RELAY),
            training=replace(RELAY_TRAINING, batch_size=32, steps=6_000),
        ),
        "The paper's task without identity scaling, so that other tools can open it; its start supplies a relay.",
    ),
    Preset(
        RunConfig(
            name="binding-neutral",
            task=NEUTRAL_TASK,
            model=model_for(NEUTRAL_TASK, n_layers=8, n_heads=4, d_model=128, d_mlp=256, **NEUTRAL),
            training=NEUTRAL_TRAINING,
        ),
        "The paper's task from plain random weights: the data are scheduled, nothing is supplied.",
    ),
    Preset(
        RunConfig(
            name="binding-deep",
            task=NEUTRAL_TASK,
            model=model_for(NEUTRAL_TASK, n_layers=12, n_heads=4, d_model=128, d_mlp=512, **NEUTRAL),
            training=replace(NEUTRAL_TRAINING, evaluation_size=1_500),
        ),
        "The paper's task with 12 layers of 4 heads, as near to its model as two cores can train; nothing is supplied.",
    ),
    Preset(
        RunConfig(
            name="binding-reassign",
            task=REASSIGN_TASK,
            model=model_for(REASSIGN_TASK, n_layers=6, n_heads=4, d_model=128, d_mlp=256, **NEUTRAL),
            training=replace(NEUTRAL_TRAINING, batch_size=32),
        ),
        "Programs of 8 lines that assign variables again (three lines in ten), from plain random weights.",
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
