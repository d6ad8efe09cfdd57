"""The preset of study 2, exactly as published."""

from __future__ import annotations

from bindscope.model.config import InitConfig
from bindscope.runs.config import RunConfig
from bindscope.studies.preset import Preset, model_for
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.training.config import CheckpointPlan, OptimizerConfig, TrainingConfig

TASK = AssignAddTask()

PRESETS = (
    Preset(
        RunConfig(
            name="assign-add",
            task=TASK,
            model=model_for(
                TASK,
                n_layers=2,
                n_heads=1,
                d_model=128,
                d_head=128,
                d_mlp=512,
                activation="relu",
                positions="learned",
                norm="none",
                bias=False,
                mlp_layers=(1,),  # only the second layer has an MLP
                init=InitConfig(scheme="gpt2", std=0.0707),
            ),
            training=TrainingConfig(
                steps=40_000,
                batch_size=512,
                optimizer=OptimizerConfig(lr=1e-3, betas=(0.9, 0.999), weight_decay=0.02),
                clip=None,
                checkpoints=CheckpointPlan(every=100, per_octave=0),
            ),
        ),
        "Sums modulo 59 whose operands are numbers or variables, as published.",
    ),
)
