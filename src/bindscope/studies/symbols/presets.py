"""Study 3, reasoning with abstract symbols (arXiv 2310.09753): its presets.

A bidirectional transformer reads a sequence of symbols and answers at its CLS token; it is tested on symbols that training
never shows. With n training symbols there are n training sequences, and a step sees at most 1,024 of them; training ends
early when validation symbols are answered or nothing is left to learn. The model is the plain one: the study's
modification is ``--set model.identity_qk=true --set model.identity_vo=true``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from bindscope.model.config import InitConfig
from bindscope.runs.config import RunConfig
from bindscope.studies.framework.preset import Preset, model_for
from bindscope.tasks.templates import TemplateTask
from bindscope.tasks.templates.task import Name
from bindscope.training.config import CheckpointPlan, OptimizerConfig, TrainingConfig

BATCH_SIZE = 1024
EPOCHS = 1000
IDENTITY_GAIN = 100.0  # a and b learn this many times as fast as other weights, before sequences are remembered
TORCH_GAIN = 3**-0.5  # torch draws linear weights uniformly within ±1/√fan_in


TASKS: tuple[tuple[str, Name, int, str], ...] = (
    # preset, task, training symbols, what it is
    ("same-different", "same-different", 1024, "Are two symbols the same? Asked of symbols never seen in training."),
    ("aba-abb", "aba-abb", 512, "Does the third symbol repeat the first or the second?"),
    ("aabb-abab", "aabb-abab", 512, "Do equal symbols stand side by side or in turn?"),
    ("majority", "majority-6", 8192, "Does the first symbol fill more than half of six positions?"),
    ("counting", "counting-5", 1024, "How often does the first symbol occur among five?"),
    ("random", "random", 1024, "Which of several random templates is it?"),
    ("copy", "copy", 128, "Repeat a symbol; wider models need more of them."),
    ("print-real", "print-real", 1024, "Answer a=+1,b=-1,print(a) with the number +1."),
    ("print", "print-symbolic", 4096, 'Answer a="q",b="r",print(a) with q, for symbols never seen.'),
)


def make_preset(name: str, task: TemplateTask, summary: str) -> Preset:
    """The study's default model and training on one of its tasks: n sequences, seen a thousand times.

    Weights start as torch starts them. Embeddings have entries of size 1, which a learning rate of 0.001 hardly moves, so
    that a sequence is not simply remembered by moving its symbols; where they are also the answers, length 1.
    """
    symbolic, d_model = task.target_kind == "token", 128
    model = model_for(
        task,
        n_layers=2,
        n_heads=16,
        d_model=d_model,
        d_head=64,
        d_mlp=2 * d_model,
        causal=False,
        positions="learned",
        tied=symbolic,
        identity_gain=IDENTITY_GAIN,
        init=InitConfig("fan_in", gain=TORCH_GAIN, embedding_std=d_model**-0.5 if symbolic else 1.0),
    )
    training = TrainingConfig(
        batch_size=min(task.alphabet, BATCH_SIZE),
        data="fixed",
        epochs=EPOCHS,
        optimizer=OptimizerConfig(lr=1e-3, betas=(0.9, 0.999), weight_decay=0.0),
        clip=None,
        checkpoints=CheckpointPlan(every=100, per_octave=2),
        evaluate_every=25,
        evaluation_size=500,
        stop_at=0.999 if symbolic else None,
        stop_below=None if symbolic else 0.003,
        stop_fitted=1e-3 if symbolic else 1e-4,
    )
    return Preset(RunConfig(name=name, task=task, model=model, training=training), summary)


def make_gpt2_preset(name: str, task: TemplateTask, summary: str, shape: Mapping[str, int]) -> Preset:
    """A GPT-2 on one of the tasks: causal, learned positions, weights drawn as GPT-2 draws them.

    It reads a sequence from left to right, so that CLS, which comes last, sees all of it. With ``--set
    start.directory=DIR`` it begins with the weights in a Hugging Face directory, and has their shape.
    """
    symbolic = task.target_kind == "token"
    preset = make_preset(name, task, summary)
    model = model_for(
        task,
        **shape,
        causal=True,
        positions="learned",
        activation="gelu_tanh",
        tied=symbolic,
        init=InitConfig("gpt2", std=0.02, scale_residual=True),
    )
    optimizer = dataclasses.replace(preset.config.training.optimizer, lr=GPT2_RATE)
    training = dataclasses.replace(preset.config.training, optimizer=optimizer, clip=1.0)
    return Preset(dataclasses.replace(preset.config, model=model, training=training), summary)


GPT2_RATE = 3e-4
GPT2_SMALL = {"n_layers": 4, "n_heads": 4, "d_model": 128, "d_head": 32, "d_mlp": 512}
GPT2 = {"n_layers": 12, "n_heads": 12, "d_model": 768, "d_head": 64, "d_mlp": 3072}
_ABA_ABB = TemplateTask(name="aba-abb", alphabet=512)

PRESETS = (
    *(
        make_preset(f"templates-{name}", TemplateTask(name=task, alphabet=alphabet), summary)
        for name, task, alphabet, summary in TASKS
    ),
    make_gpt2_preset("templates-gpt2-small", _ABA_ABB, "A small GPT-2 from scratch: ABA or ABB?", GPT2_SMALL),
    make_gpt2_preset("templates-gpt2", _ABA_ABB, "GPT-2's own size, from scratch or pretrained; for a GPU.", GPT2),
)
