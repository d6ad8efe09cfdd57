"""Study 3, reasoning with abstract symbols (arXiv 2310.09753): its presets.

A bidirectional transformer reads a string of symbols and answers at its CLS token; it is tested on symbols that training
never shows. With n training symbols there are n training strings, and a step sees 1,024 of them. The model is the plain
one: the study's modification is ``--set model.identity_qk=true --set model.identity_vo=true``.
"""

from __future__ import annotations

from bindscope.runs.config import RunConfig
from bindscope.studies.preset import Preset, model_for
from bindscope.tasks.templates import TemplateTask
from bindscope.tasks.templates.task import Name
from bindscope.training.config import CheckpointPlan, OptimizerConfig, TrainingConfig

BATCH_SIZE = 1024
EPOCHS = 1000


TASKS: tuple[tuple[str, Name, int, str], ...] = (
    # preset, task, training symbols, what it is
    ("same-different", "same-different", 1024, "Are two symbols the same? Asked of symbols never seen in training."),
    ("aba-abb", "aba-abb", 512, "Does the third symbol repeat the first or the second?"),
    ("aabb-abab", "aabb-abab", 512, "Do equal symbols stand side by side or in turn?"),
    ("majority", "majority-6", 8192, "Does the first symbol fill more than half of six places?"),
    ("counting", "counting-5", 1024, "How often does the first symbol occur among five?"),
    ("random", "random", 1024, "Which of several random templates is it?"),
    ("copy", "copy", 128, "Repeat a symbol; wider models need more of them."),
    ("print-real", "print-real", 1024, "Answer a=+1,b=-1,print(a) with the number +1."),
    ("print", "print-symbolic", 4096, 'Answer a="q",b="r",print(a) with q, for symbols never seen.'),
)


def make_preset(name: str, task: TemplateTask, summary: str) -> Preset:
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


PRESETS = tuple(
    make_preset(f"templates-{name}", TemplateTask(name=task, alphabet=alphabet), summary)
    for name, task, alphabet, summary in TASKS
)
