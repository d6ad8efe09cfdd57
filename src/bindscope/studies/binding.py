"""Study 1, variable binding in symbolic programs (arXiv 2505.20896): its presets.

``binding-paper`` is the paper's own model and training. The three others learn the same task on two CPU cores with parts
that the paper does not have, each an ordinary setting:

1. several queries share one program (``task.queries``, balanced by weights instead of rejection);
2. program lengths vary from batch to batch (``task.min_lines``), evaluation is at full length;
3. attention starts near copying and looking back: embeddings N(0, 1), weights N(0, 1/fan_in), W_O = W_Vᵀ and W_Q = W_K
   (``model.init.mimetic_*``), the first layer's heads prefer the tokens 0, 1, 2, … places back (``offset_bias``);
4. identity scaling of attention scores and head outputs (``model.identity_*``), in ``tiny`` and ``laptop``;
5. AdamW at 5e-4 with β₁ = 0.95 and a short warm-up.
"""

from __future__ import annotations

from dataclasses import replace

from bindscope.model.config import InitConfig, ModelConfig
from bindscope.runs.config import RunConfig
from bindscope.studies.preset import Preset, fit_model
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
