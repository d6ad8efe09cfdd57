"""Settings to ask language models with, and a small model that reads the same programs byte by byte."""

from __future__ import annotations

from dataclasses import replace

from bindscope.runs.config import RunConfig
from bindscope.studies.binding.presets import RECIPE_INIT, RECIPE_TRAINING
from bindscope.studies.framework.preset import Preset, model_for
from bindscope.tasks.code import CodeTask

TASK = CodeTask(lines=6, max_depth=3)

PRESETS = (
    Preset(
        RunConfig(
            name="code-bytes",
            task=TASK,
            model=model_for(TASK, n_layers=5, d_model=64, n_heads=4, d_head=16, d_mlp=256, init=RECIPE_INIT),
            training=replace(RECIPE_TRAINING, evaluation_size=2_000),
        ),
        "Programs of 6 lines as Python text: the settings that 'import --family code' starts from, for a model of bytes.",
    ),
)
