"""Study 3, reasoning with abstract symbols (arXiv 2310.09753): its presets.

A bidirectional transformer reads a string of symbols and answers at its CLS token; it is tested on symbols that training
never shows. With n training symbols there are n training strings, and a step sees 1,024 of them. The model is the plain
one: the study's modification is ``--set model.identity_qk=true --set model.identity_vo=true``.
"""

from __future__ import annotations

from bindscope.runs.config import RunConfig
from bindscope.studies.preset import Preset, model_for
from bindscope.tasks.templates import TemplateTask
from bindscope.training.config import CheckpointPlan, OptimizerConfig, TrainingConfig

BATCH_SIZE = 1024
EPOCHS = 1000


def symbols_preset(name: str, task: TemplateTask, summary: str) -> Preset:
    """The study's default model and training on one of its tasks."""
    model = model_for(
        task,
        n_layers=2,
        n_heads=16,
        d_model=128,
        d_head=64,
        d_mlp=256,
        causal=False,
        positions="learned",
        tied=task.target_kind == "token",
    )
    training = TrainingConfig(
        steps=max(EPOCHS, EPOCHS * task.alphabet // BATCH_SIZE),
        batch_size=BATCH_SIZE,
        optimizer=OptimizerConfig(lr=1e-3, betas=(0.9, 0.999), weight_decay=0.0),
        clip=None,
        checkpoints=CheckpointPlan(every=100, per_octave=2),
        evaluate_every=20,
    )
    return Preset(RunConfig(name=name, task=task, model=model, training=training), summary)


PRESETS = (
    symbols_preset(
        "templates-same-different",
        TemplateTask(name="same-different", alphabet=1024),
        "Are two symbols the same? Asked of symbols never seen in training.",
    ),
    symbols_preset(
        "templates-aba-abb",
        TemplateTask(name="aba-abb", alphabet=512),
        "Does the third symbol repeat the first or the second?",
    ),
    symbols_preset(
        "templates-aabb-abab",
        TemplateTask(name="aabb-abab", alphabet=512),
        "Do equal symbols stand side by side or in turn?",
    ),
    symbols_preset(
        "templates-majority",
        TemplateTask(name="majority-6", alphabet=8192),
        "Does the first symbol fill more than half of six places?",
    ),
    symbols_preset(
        "templates-counting",
        TemplateTask(name="counting-5", alphabet=1024),
        "How often does the first symbol occur among five?",
    ),
    symbols_preset(
        "templates-random",
        TemplateTask(name="random", alphabet=1024),
        "Which of several random templates is it?",
    ),
    symbols_preset(
        "templates-copy",
        TemplateTask(name="copy", alphabet=128),
        "Repeat a symbol; wider models need more of them.",
    ),
    symbols_preset(
        "templates-print-real",
        TemplateTask(name="print-real", alphabet=1024),
        "Answer a=+1,b=-1,print(a) with the number +1.",
    ),
    symbols_preset(
        "templates-print",
        TemplateTask(name="print-symbolic", alphabet=4096),
        'Answer a="q",b="r",print(a) with q, for symbols never seen.',
    ),
)
