"""The experiments of study 3, as data: how much training each model needs before it answers about unseen symbols.

A curve is a model and several n: n training symbols, n training sequences. What is trained without ``--full`` has four heads
of 32 instead of the paper's sixteen of 64 and stops at the n that two cores can train; ``--full`` adds the paper's heads
and its larger n, for more machines. A run ends early when it has solved the task (on validation symbols) or has nothing
left to learn from its training sequences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bindscope.studies.framework.experiments import Experiment, Variant, defer

FEWER_HEADS: dict[str, Any] = {"model.n_heads": 4, "model.d_head": 32}
PAPER_HEADS: dict[str, Any] = {"model.n_heads": 16, "model.d_head": 64}
MODELS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "plain": ("the transformer as it is", {}),
    "kq": ("with a trained multiple of the identity in W_K W_Qᵀ", {"model.identity_qk": True}),
    "vo": ("with a trained multiple of the identity in W_V W_Oᵀ", {"model.identity_vo": True}),
    "both": ("with both multiples of the identity", {"model.identity_qk": True, "model.identity_vo": True}),
    "mimetic": ("started with W_Q = W_K and W_O = W_Vᵀ", {"model.init.mimetic_qk": 1.0, "model.init.mimetic_vo": 1.0}),
    "last-layer": ("with all but the unembedding left as it was drawn", {"training.trained": "last"}),
    "one-hot-mlp": ("an MLP on one-hot tokens", {"baseline.kind": "one-hot-mlp"}),
    "embedding-mlp": ("an MLP on embeddings", {"baseline.kind": "embedding-mlp"}),
    "relation-mlp": ("an MLP on embeddings and XXᵀ", {"baseline.kind": "relation-mlp"}),
    "rnn": ("a recurrent network", {"baseline.kind": "rnn"}),
    "lstm": ("an LSTM", {"baseline.kind": "lstm"}),
}
BATCH_SIZE, EPOCHS = 1024, 1000
SEEDS = 3
RECORDED: dict[str, Any] = {
    "training.checkpoints.every": 10**6, "training.checkpoints.per_octave": 0, "training.save_every": 500,
}  # fmt: skip
CHOSEN_GAIN = 300.0  # the one that 'bindscope experiment gain' chooses
COPY_FITTED = 0.01  # training loss at which copying is over: what unseen symbols get hardly changes after
_CONCLUSIONS = "bindscope.studies.symbols.efficiency.conclude"
_FIGURES = "bindscope.studies.symbols.efficiency.draw"
_GAIN = "bindscope.studies.symbols.efficiency.gain"
_WIDTH_CONCLUSIONS = "bindscope.studies.symbols.width.conclude"
_WIDTH_FIGURES = "bindscope.studies.symbols.width.draw"
LIMITS = (
    "Four heads of 32 instead of the paper's sixteen of 64, and a and b learn a hundred times as fast as other weights; "
    "training sequences are drawn again with each seed; n beyond what two cores can train is left to --full."
)


def curve(
    model: str, sizes: Sequence[int], full: Sequence[int] = (), heads: Mapping[str, Any] = FEWER_HEADS
) -> tuple[Variant, ...]:
    """One variant for each n, named ``kq-64``, and for each n of ``full`` one with the paper's heads.

    >>> [variant.name for variant in curve("kq", (32, 64), full=(64,))]
    ['kq-32', 'kq-64', 'kq-64-paper']
    """
    meaning, changes = MODELS[model]
    small = [(n, heads, "", False) for n in sizes]
    large = [(n, PAPER_HEADS, "-paper", True) for n in full]
    return tuple(
        Variant(
            f"{model}-{n}{ending}",
            f"{meaning}, n = {n:,}",
            {**changes, **chosen, **sizes_of(n)},
            labels={"model": model, "n": n, "heads": chosen["model.n_heads"]},
            full=is_full,
        )
        for n, chosen, ending, is_full in small + large
    )


def sizes_of(n: int) -> dict[str, Any]:
    """n sequences over n symbols, seen a thousand times in batches of at most 1,024."""
    return {
        "task.alphabet": n, "training.batch_size": min(n, BATCH_SIZE), "training.data": "fixed", "training.epochs": EPOCHS,
    }  # fmt: skip


def _experiment(
    name: str, question: str, preset: str, variants: Sequence[tuple[Variant, ...]], **more: Any
) -> Experiment:
    return Experiment(
        name=name,
        question=question,
        preset=preset,
        variants=tuple(variant for part in variants for variant in part),
        **{
            "changes": RECORDED,
            "limits": LIMITS,
            "seeds": SEEDS,
            "conclude": defer(_CONCLUSIONS, "conclude_curves"),
            "draw": defer(_FIGURES, "draw_curves"),
            "minutes": 0.5,
            **more,
        },
    )


def _widths(model: str, widths: Mapping[int, Sequence[int]], full: Mapping[int, Sequence[int]]) -> tuple[Variant, ...]:
    """A curve for each width, named ``plain-128-wide-64``."""
    return tuple(
        _of_width(variant, model, width)
        for sizes, is_full in ((widths, False), (full, True))
        for width, values in sizes.items()
        for variant in curve(model, () if is_full else values, values if is_full else ())
    )


def _copy_widths(model: str, widths: Mapping[int, Sequence[int]], full: bool = False) -> tuple[Variant, ...]:
    """The same with the paper's heads at every size, for W_V W_O can copy no more dimensions than the heads span, and
    with embeddings of length 1 whatever the width, for the answers are read by them.
    """
    variants = []
    for width, values in widths.items():
        for variant in curve(model, values, heads=PAPER_HEADS):
            wide = _of_width(variant, model, width)
            changes = {**wide.changes, "model.init.embedding_std": width**-0.5, "training.stop_fitted": COPY_FITTED}
            variants.append(replace(wide, changes=changes, full=full))
    return tuple(variants)


def _of_width(variant: Variant, model: str, width: int) -> Variant:
    return replace(
        variant,
        name=f"{model}-{width}-wide-{variant.labels['n']}" + ("-paper" if variant.full else ""),
        meaning=f"{variant.meaning}, width {width:,}",
        changes={**variant.changes, "model.d_model": width, "model.d_mlp": 2 * width},
        labels={**variant.labels, "width": width},
    )


def copy_variant(model: str, width: int, n: int) -> Variant:
    """A variant of the experiment ``copy``, of any size.

    >>> copy_variant("both", 64, 16).name
    'both-64-wide-16'
    """
    (variant,) = _copy_widths(model, {width: (n,)})
    return variant


def _setting(setting: str, word: str, values: Sequence[Any], model: str, n: int) -> tuple[Variant, ...]:
    """One variant for each value of a setting of a model at one n."""
    (base,) = curve(model, (n,))
    return tuple(
        Variant(
            f"{model}-{word}-{value:g}",
            f"{base.meaning}, {setting} = {value:g}",
            {**base.changes, setting: value},
            labels={**base.labels, "setting": word, "value": float(value)},
        )
        for value in values
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    _experiment(
        "same-different",
        "How many training sequences does each model need to tell two equal symbols from two different ones?",
        "templates-same-different",
        (
            curve("plain", (32, 64, 128, 256, 512, 1024, 2048), full=(128, 512, 1024, 2048, 4096)),
            curve("kq", (8, 16, 32, 64, 128), full=(16, 32, 64, 128)),
            curve("vo", (32, 128, 512)),
            curve("both", (8, 16, 32, 64, 128), full=(16, 32, 64, 128)),
            curve("mimetic", (32, 128, 512)),
            curve("last-layer", (32, 128, 512, 2048)),
            curve("one-hot-mlp", (32, 512, 2048), full=(8192,)),
            curve("embedding-mlp", (32, 512, 2048), full=(8192,)),
            curve("relation-mlp", (4, 16, 64, 512, 2048)),
        ),
        minutes=0.3,
    ),
    _experiment(
        "aba-abb",
        "Which of the two identity scalings helps to see which of two symbols comes again?",
        "templates-aba-abb",
        (
            curve("plain", (64, 128, 256, 512, 1024), full=(512, 2048, 8192)),
            curve("kq", (16, 32, 64, 128, 512), full=(512,)),
            curve("vo", (64, 128, 512), full=(512,)),
            curve("both", (16, 32, 64, 128, 512), full=(512,)),
            curve("rnn", (512, 2048, 8192)),
            curve("lstm", (512, 2048, 8192)),
            curve("embedding-mlp", (512, 2048, 8192)),
        ),
        minutes=0.6,
    ),
    _experiment(
        "print-real",
        "How many programs does it take to print a variable's number for names never seen?",
        "templates-print-real",
        (
            curve("plain", (64, 256, 512), full=(512, 1024, 2048)),
            curve("kq", (16, 32, 64, 128), full=(32, 64)),
            curve("both", (16, 32, 64, 128)),
        ),
        seeds=2,
        minutes=0.5,
    ),
    _experiment(
        "print-swapped",
        "Can it still be printed when either name may have either number, so that two comparisons must be combined?",
        "templates-print-real",
        (curve("plain", (128, 512)), curve("kq", (128, 512)), curve("both", (128, 512))),
        changes={**RECORDED, "task.name": "print-swapped"},
        seeds=1,
        minutes=2,
    ),
    _experiment(
        "print-symbolic",
        "How many programs does it take to print a value never seen?",
        "templates-print",
        (
            curve("plain", (128, 512), full=(512, 8192, 32768, 131072, 262144)),
            curve("kq", (128, 512)),
            curve("both", (64, 128, 256, 512), full=(2048, 4096, 8192)),
        ),
        seeds=2,
        minutes=3,
    ),
    _experiment(
        "majority",
        "How many sequences does it take to see whether the first symbol fills more than half of six positions?",
        "templates-majority",
        (
            curve("plain", (128, 512, 2048), full=(8192,)),
            curve("kq", (128, 512)),
            curve("both", (32, 64, 128, 256, 512, 2048), full=(8192,)),
            curve("relation-mlp", (128, 512)),
        ),
        seeds=2,
        minutes=0.8,
    ),
    _experiment(
        "copy",
        "Does a wider model need more symbols before it repeats one that it never saw?",
        "templates-copy",
        (
            _copy_widths(
                "plain",
                {
                    32: (16, 32, 64, 128),
                    64: (32, 64, 128, 256),
                    128: (64, 128, 256, 512),
                    256: (128, 256, 512, 1024),
                    512: (256, 512, 1024),
                },
            ),
            _copy_widths("plain", {1024: (512, 1024, 2048), 2048: (1024, 2048), 4096: (1024, 2048, 4096)}, full=True),
            _copy_widths("both", dict.fromkeys((32, 64, 128, 256, 512), (4, 8, 16, 32))),
            _copy_widths("both", dict.fromkeys((1024, 4096), (8, 16, 32)), full=True),
        ),
        limits=(
            "a and b learn a hundred times as fast as other weights; training sequences are drawn again with each seed; widths "
            "beyond what two cores can train are left to --full."
        ),
        conclude=defer(_WIDTH_CONCLUSIONS, "conclude_copy"),
        draw=defer(_WIDTH_FIGURES, "draw_copy"),
        minutes=0.4,
    ),
    _experiment(
        "gain",
        "How much faster should the two identity scalings learn than other weights, by validation loss on ABA or ABB?",
        "templates-aba-abb",
        (_setting("model.identity_gain", "gain", (1, 10, 30, 100, 300, 1000), "both", 64),),
        conclude=defer(_GAIN, "conclude_gain"),
        draw=defer(_GAIN, "draw_gain"),
        minutes=0.2,
        limits="Four heads of 32, n = 64, one task: it is there to choose a gain for same-different without looking at it.",
    ),
    _experiment(
        "same-different-gain",
        "How many sequences does identity scaling need at the gain that another task chose?",
        "templates-same-different",
        (curve("both", (8, 16, 32, 64, 128, 256, 512)),),
        changes={**RECORDED, "model.identity_gain": CHOSEN_GAIN},
        seeds=6,
        minutes=0.2,
        limits=f"{LIMITS.replace('a hundred', 'three hundred')} The gain is the one with the lowest mean validation loss in 'gain'.",
    ),
    _experiment(
        "width",
        "Does width help or hurt when the answer is a number?",
        "templates-same-different",
        (
            _widths(
                "plain",
                {32: (512,), 64: (512,), 128: (512,), 256: (512,), 512: (512,)},
                {32: (1024,), 128: (1024,), 512: (1024,)},
            ),
        ),
        seeds=2,
        minutes=1,
        conclude=defer(_WIDTH_CONCLUSIONS, "conclude_width"),
        draw=defer(_WIDTH_FIGURES, "draw_width"),
    ),
    _experiment(
        "shape",
        "What do depth, heads, learning rate and batch size change?",
        "templates-same-different",
        tuple(
            _setting(setting, word, values, model, n)
            for model, n in (("plain", 512), ("both", 64))
            for setting, word, values in (
                ("model.n_layers", "depth", (1, 2, 3)),
                ("model.n_heads", "heads", (1, 2, 4, 8)),
                ("training.optimizer.lr", "rate", (1e-4, 3e-4, 1e-3, 3e-3)),
                ("training.batch_size", "batch", (16, 64) if n == 64 else (64, 512)),
            )
        ),
        seeds=2,
        conclude=defer(_WIDTH_CONCLUSIONS, "conclude_shape"),
        draw=defer(_WIDTH_FIGURES, "draw_shape"),
        minutes=0.4,
    ),
)  # fmt: skip
