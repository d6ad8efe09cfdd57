"""Experiments beyond the paper: when does composition still generalise as the task and the model change?

Each changes one option of ``assign-add-small`` and asks which of the nine pools reach 90 %, and when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bindscope.studies.framework.experiments import Experiment, Variant, defer, sweep_variants

PRESET = "assign-add-small"
MODULI = (13, 23, 31, 59)
N_VARIABLES = (4, 8, 12, 20)
N_ELEMENTS = 24  # of the operators that are compared: as many as four letters have orders
COMMON: dict[str, Any] = {
    "task.pair_fraction": 0.85, "training.steps": 2_500, "training.schedule.kind": "linear", "training.stop_at": 0.95,
    "training.checkpoints.every": 2_500,
}  # fmt: skip
_CONCLUDE = defer("bindscope.studies.assign_add.experiments.conclude_beyond", "conclude_options")
_DRAW = defer("bindscope.studies.assign_add.experiments.draw_beyond", "draw_options")
IDENTITY_GAIN: dict[str, Any] = {"model.identity_gain": 20.0}  # as in the binding experiments
_IDENTITY = "bindscope.studies.assign_add.experiments.identity"
LIMITS = (
    "A small model, few seeds, and a learning rate and number of steps chosen for the preset as it is; a variant that "
    "fails may only need longer. The same pairs are kept with every seed."
)


def _operator(name: str, meaning: str, operator: str, modulus: int = N_ELEMENTS) -> Variant:
    return Variant(name, meaning, {"task.operator": operator, "task.modulus": modulus})


def _borrow(variant: Variant) -> Variant:
    """A variant that is the preset as it is, which the modulus experiment trains."""
    return replace(variant, borrowed=("modulus", "modulus-31"))


def _layers(name: str, meaning: str, n_layers: int, mlp_layers: list[int]) -> Variant:
    return Variant(name, meaning, {"model.n_layers": n_layers, "model.mlp_layers": mlp_layers})


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="modulus",
        question="For how many numbers does a model that adds also compose?",
        preset=PRESET,
        variants=sweep_variants("task.modulus", MODULI, "modulus"),
        sweeps="task.modulus",
        seeds=2,
        changes=COMMON,
        minutes=2,
        limits=f"{LIMITS} A larger modulus has more pairs to learn from and more numbers to tell apart: both change.",
        conclude=_CONCLUDE,
        draw=_DRAW,
    ),
    Experiment(
        name="operators",
        question="Does composition need addition, or any operator that the model can learn?",
        preset=PRESET,
        variants=(
            _operator("plus", "a + b modulo 24", "+"),
            _operator("minus", "a − b modulo 24: order matters", "-"),
            _operator("times", "a · b modulo 24, where many factors have a divisor in common with 24", "*"),
            _operator("times-prime", "a · b modulo 23, a prime: all factors but 0 can be undone", "*", 23),
            _operator("dihedral", "the 24 symmetries of a polygon with twelve corners: order matters", "dihedral"),
            _operator("symmetric", "the 24 orders of four letters: order matters", "symmetric"),
            Variant(
                "minus-two-heads",
                "a − b modulo 24, with two heads a layer: one could follow each operand",
                {"task.operator": "-", "task.modulus": N_ELEMENTS, "model.n_heads": 2},
            ),
        ),
        seeds=2,
        changes=COMMON,
        minutes=2,
        limits=f"{LIMITS} All but one have 24 elements and the same trained pairs; modulo 23 there are fewer of both.",
        conclude=_CONCLUDE,
        draw=_DRAW,
    ),
    Experiment(
        name="variables",
        question="How many variables can there be?",
        preset=PRESET,
        variants=tuple(
            _borrow(variant) if variant.name == "variables-8" else variant
            for variant in sweep_variants("task.n_variables", N_VARIABLES, "variables")
        ),
        sweeps="task.n_variables",
        seeds=2,
        changes=COMMON,
        minutes=2,
        limits=f"{LIMITS} Two variables are barred from either position whatever their number, so with four none stands in both.",
        conclude=_CONCLUDE,
        draw=_DRAW,
    ),
    Experiment(
        name="layers",
        question="How many layers does composition need, and what do more layers, MLPs or heads change?",
        preset=PRESET,
        variants=(
            _layers("one-layer", "one layer, with an MLP", 1, [0]),
            _borrow(_layers("two-layers", "two layers, an MLP in the second: the preset's shape", 2, [1])),
            _layers("two-mlps", "two layers, an MLP in both", 2, [0, 1]),
            _layers("three-layers", "three layers, an MLP in the third", 3, [2]),
            Variant("two-heads", "two layers of two heads", {"model.n_heads": 2}),
        ),
        seeds=2,
        changes=COMMON,
        minutes=2,
        limits=f"{LIMITS} More layers or heads are also more parameters.",
        conclude=_CONCLUDE,
        draw=_DRAW,
    ),
    Experiment(
        name="identity-sums",
        question="Does identity-scaled attention make sums with variables learned from fewer examples?",
        preset=PRESET,
        variants=(
            _borrow(Variant("off", "no identity-scaling term: the preset's attention")),
            Variant(
                "qk", "the identity-scaling term in the scores alone", {**IDENTITY_GAIN, "model.identity_qk": True}
            ),
            Variant(
                "vo", "the identity-scaling term in the outputs alone", {**IDENTITY_GAIN, "model.identity_vo": True}
            ),
            Variant(
                "both",
                "identity-scaling terms in scores and outputs",
                {**IDENTITY_GAIN, "model.identity_qk": True, "model.identity_vo": True},
            ),
        ),
        seeds=6,
        changes=COMMON,
        minutes=2,
        limits=f"{LIMITS} One gain of the identity-scaling terms, that of the binding experiments, at which they learn twenty times as fast as other numbers of their size.",
        conclude=defer(_IDENTITY, "conclude_identity_sums"),
        draw=_DRAW,
        measure=defer(_IDENTITY, "measure_identity_sums"),
    ),
)
