"""Language modelling in study 3: a causal transformer of GPT-2's shape on a text that the reader has.

``--set task.source=PATH`` names the text; the study's modification is ``--set model.identity_qk=true --set
model.identity_vo=true``. ``bindscope language PATH`` trains both and compares.
"""

from __future__ import annotations

from bindscope.model.config import InitConfig
from bindscope.runs.config import RunConfig
from bindscope.studies.framework.preset import Preset, model_for
from bindscope.tasks.text import TextTask
from bindscope.training.config import CheckpointPlan, OptimizerConfig, ScheduleConfig, TrainingConfig


def _make_small() -> Preset:
    task = TextTask(vocabulary_size=1024, context=128)
    model = model_for(
        task, n_layers=2, n_heads=4, d_model=128, d_head=32, d_mlp=512, positions="learned", activation="gelu_tanh",
        tied=True, init=InitConfig(scale_residual=True),
    )  # fmt: skip
    training = TrainingConfig(
        steps=1_000,
        batch_size=8,
        optimizer=OptimizerConfig(lr=2e-3, betas=(0.9, 0.99), weight_decay=0.01),
        schedule=ScheduleConfig(kind="linear", warmup_steps=100),
        checkpoints=CheckpointPlan(every=1_000, per_octave=0),
        evaluate_every=100,
        evaluation_size=32,
        save_every=200,
    )
    return Preset(
        RunConfig(name="text-small", task=task, model=model, training=training),
        "Predict the next token of a text you name, in minutes: a small GPT-2 with a BPE of its own.",
    )


def _make_gpt2() -> Preset:
    task = TextTask(vocabulary_size=50257, context=1024)
    model = model_for(
        task, n_layers=12, n_heads=12, d_model=768, d_head=64, d_mlp=3072, positions="learned", activation="gelu_tanh",
        dropout=0.1, tied=True, init=InitConfig(scale_residual=True),
    )  # fmt: skip
    training = TrainingConfig(
        steps=3_000,
        batch_size=8,
        optimizer=OptimizerConfig(lr=3e-4, betas=(0.9, 0.999), weight_decay=0.01),
        checkpoints=CheckpointPlan(every=1_000, per_octave=0),
        evaluate_every=250,
        evaluation_size=64,
        save_every=250,
    )
    return Preset(
        RunConfig(name="text-gpt2", task=task, model=model, training=training),
        "The paper's size: GPT-2 from scratch on 8 × 1,024 tokens a step, for a GPU.",
    )


PRESETS = (_make_small(), _make_gpt2())
