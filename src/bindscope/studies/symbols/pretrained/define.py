"""The experiment on GPT-2, as data: from scratch, and from pretrained weights where a directory of them is named.

    bindscope experiment gpt2                          a small GPT-2 from scratch
    bindscope experiment gpt2 --full                   … and one of GPT-2's own size, for a GPU
    bindscope experiment gpt2 --pretrained DIR --full  … and the GPT-2 in DIR, a local Hugging Face directory

Pretrained models are compared with those of their own shape from scratch. A directory counts as GPT-2's where it has
GPT-2's own 50,257 tokens; any other is a stand-in, trained by someone on something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bindscope.model.described import describe_directory
from bindscope.runs.start import FIXED, SHAPE
from bindscope.studies.framework.experiments import Experiment, Variant, defer
from bindscope.studies.symbols.experiments.define import sizes_of
from bindscope.studies.symbols.presets import GPT2, GPT2_SMALL, TORCH_GAIN

NAME = "gpt2"
GPT2_TOKENS = 50257
SCRATCH, TORCH, PRETRAINED = "scratch", "torch-start", "pretrained"
MEANINGS = {
    SCRATCH: "from scratch, weights drawn as GPT-2 draws them",
    TORCH: "from scratch, weights drawn and trained as in the other experiments (embeddings of size 1, rate .001)",
    PRETRAINED: "started from the weights in a directory",
}
SIZES = (32, 64, 128, 256, 512, 1024, 2048)
PRETRAINED_SIZES = (16, 32, 64, 128, 256)
FULL_SIZES = (32, 256, 512, 2048, 8192)
TEST_SYMBOLS = 256
_TORCH_START: dict[str, Any] = {
    "model.init.scheme": "fan_in", "model.init.gain": TORCH_GAIN, "model.init.embedding_std": 1.0,
    "model.init.scale_residual": False, "training.optimizer.lr": 1e-3,
}  # fmt: skip


def gpt2_experiment(directory: str | Path | None = None) -> Experiment:
    """The experiment, with curves of the model in ``directory`` where one is named.

    >>> [variant.name for variant in gpt2_experiment("gpt2").variants if variant.labels["model"] == "pretrained"]
    ['pretrained-16', 'pretrained-32', 'pretrained-64', 'pretrained-128', 'pretrained-256']
    """
    variants = [
        *curve(SCRATCH, GPT2_SMALL, SIZES),
        *curve(TORCH, GPT2_SMALL, SIZES),
        *curve(SCRATCH, GPT2, FULL_SIZES, full=True),
    ]
    if directory is not None:
        found = describe_directory(directory, only="gpt2").config
        shape = {name: getattr(found, name) for name in GPT2}
        if shape not in (GPT2, GPT2_SMALL):
            variants += curve(SCRATCH, shape, FULL_SIZES, full=True)
        fitting = [n for n in PRETRAINED_SIZES if tokens_needed(n) <= found.d_vocab]
        start = {f"model.{name}": getattr(found, name) for name in SHAPE}
        start |= {f"model.{name}": value for name, value in FIXED.items()} | {"start.directory": str(directory)}
        variants += curve(PRETRAINED, shape, fitting, tokens=found.d_vocab, **start)
    return Experiment(
        name=NAME,
        question="How many sequences does a GPT-2 from scratch need to see which of two symbols comes again, and a pretrained one?",
        preset="templates-gpt2-small",
        variants=tuple(variants),
        seeds=3,
        limits=(
            "Without a directory of pretrained weights only models from scratch; a small one of four layers of 128 where the "
            "paper has twelve of 768. A directory without GPT-2's own vocabulary is a stand-in and says nothing about GPT-2."
        ),
        conclude=defer("bindscope.studies.symbols.pretrained.compare", "conclude_gpt2"),
        draw=defer("bindscope.studies.symbols.pretrained.draw", "draw_gpt2"),
        changes={
            "training.checkpoints.every": 10**6, "training.checkpoints.per_octave": 0, "training.save_every": 500,
            "task.test_alphabet": TEST_SYMBOLS,
        },
        minutes=0.5,
    )  # fmt: skip


def tokens_needed(n: int) -> int:
    """How many embeddings a directory must have for n sequences over n symbols, and the symbols that are tested."""
    return n + 2 * TEST_SYMBOLS + 1


def explain_left_out(directory: str | Path) -> str:
    """Which variants a directory has too few embeddings for, in a sentence; empty where it has enough for all."""
    d_vocab = describe_directory(directory, only="gpt2").config.d_vocab
    missing = [n for n in PRETRAINED_SIZES if tokens_needed(n) > d_vocab]
    if not missing:
        return ""
    names = ", ".join(f"{PRETRAINED}-{n}" for n in missing)
    return (
        f"left out: {names}; {directory} has embeddings for {d_vocab:,} tokens, and {PRETRAINED}-{missing[0]} needs "
        f"{tokens_needed(missing[0]):,} of them."
    )


def curve(
    model: str, shape: Mapping[str, int], sizes: Sequence[int], tokens: int = 0, full: bool = False, **more: Any
) -> list[Variant]:
    """One variant for each n; models of another shape than the small one have it in their names."""
    small = shape == GPT2_SMALL or model == PRETRAINED
    ending = "" if small else f"-{shape['n_layers']}x{shape['d_model']}"
    changes = {f"model.{name}": size for name, size in shape.items()} | (_TORCH_START if model == TORCH else {}) | more
    return [
        Variant(
            f"{model}-{n}{ending}",
            f"{MEANINGS[model]}, {shape['n_layers']} layers of {shape['d_model']}, n = {n:,}",
            {**changes, **sizes_of(n)},
            labels={
                "model": model, "n": n, "heads": shape["n_heads"], "layers": shape["n_layers"],
                "width": shape["d_model"], "tokens": tokens,
            },
            full=full,
        )
        for n in sizes
    ]  # fmt: skip


EXPERIMENTS: tuple[Experiment, ...] = (gpt2_experiment(),)
