"""The experiments of study 2, as data: the two sweeps of the paper, each at its own size and in a smaller model, and
questions beyond it.

The sweeps at the paper's size are 20 values and three seeds of 30,000 steps each, days on one core: they are for many
(``--jobs``, ``--cluster``). Those of ``assign-add-small`` ask the same questions of a model that learns in minutes. The
questions beyond the paper change one option of it and ask which of the nine splits reach 90 %, and when: does composition
still generalise?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bindscope.studies.framework.experiments import Experiment, Variant, defer, sweep_variants

SMALL = "assign-add-small"
FRACTION, FREQUENCY = "task.pair_fraction", "task.two_variable_frequency"
FRACTIONS = (
    0.06, 0.11, 0.16, 0.21, 0.26, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.79, 0.84, 0.89, 0.94, 0.99,
)  # fmt: skip
FREQUENCIES = (
    0.01, 0.06, 0.11, 0.16, 0.22, 0.27, 0.32, 0.37, 0.42, 0.47, 0.53, 0.58, 0.63, 0.68, 0.73, 0.78, 0.84, 0.89, 0.94,
    0.99,
)  # fmt: skip
SMALL_FRACTIONS = (0.06, 0.16, 0.26, 0.35, 0.45, 0.55, 0.65, 0.75, 0.84, 0.94)
SMALL_FREQUENCIES = (0.01, 0.03, 0.06, 0.11, 0.22, 0.32, 0.47, 0.63, 0.78, 0.99)
RECORDED: dict[str, Any] = {
    "training.evaluate_every": 500, "training.checkpoints.every": 30_000, "training.steps": 30_000,
}  # fmt: skip
SMALL_RECORDED: dict[str, Any] = {"training.checkpoints.every": 30_000}
QUESTIONS = {
    FRACTION: "What fraction of all pairs must training show before sums of the others come out right?",
    FREQUENCY: "How often must training show sums of two variables before they come out right?",
}
REMOVED: dict[str, Any] = {"task.two_variable_rows": "removed"}
ROWS_QUESTION = "What fraction of the sums of two variables must training ever show before the others come out right?"
SMALL_LIMITS = (
    "A smaller model, modulus and set of variables than the paper's, and fewer steps: its threshold is its own, and "
    "only that there is one speaks of the paper's claim. The same pairs are kept with every seed."
)
ROWS_LIMITS = "So are the rows of two variables, and a larger fraction keeps those of a smaller one."
LIMITS = "The same pairs are kept with every seed; a value that needs more than the steps given counts as failing."
MODULI = (13, 23, 31, 59)
N_VARIABLES = (4, 8, 12, 20)
WIDTHS = (32, 64, 128)
N_ELEMENTS = 24  # of the operators that are compared: as many as four letters have orders
COMMON: dict[str, Any] = {
    FRACTION: 0.85, "training.steps": 2_500, "training.schedule.kind": "linear", "training.stop_at": 0.95,
    "training.checkpoints.every": 2_500,
}  # fmt: skip
IDENTITY_GAIN: dict[str, Any] = {"model.identity_gain": 20.0}  # as in the binding experiments
BEYOND_LIMITS = (
    "A small model, few seeds, and a learning rate and number of steps chosen for the preset as it is; a variant that "
    "fails may only need longer. The same pairs are kept with every seed."
)
_STUDY = "bindscope.studies.assign_add"
_ROWS: dict[str, Any] = {
    "question": ROWS_QUESTION,
    "measure": defer(f"{_STUDY}.experiments.measure", "measure_new_two_variable_sums"),
}


def _sweep(
    name: str,
    setting: str,
    values: Sequence[float],
    changes: dict[str, Any],
    minutes: float,
    preset: str = "assign-add",
    **more: Any,
) -> Experiment:
    """One of the paper's sweeps."""
    usual = {"question": QUESTIONS[setting], "limits": SMALL_LIMITS if preset == SMALL else LIMITS}
    return Experiment(
        name=name,
        preset=preset,
        variants=sweep_variants(setting, values, "fraction" if setting == FRACTION else "frequency"),
        sweeps=setting,
        seeds=3,
        changes=changes,
        minutes=minutes,
        conclude=defer(f"{_STUDY}.sweeps.swept", "conclude_sweep"),
        draw=defer(f"{_STUDY}.sweeps.draw", "draw_sweep"),
        **{**usual, **more},
    )


def _beyond(name: str, question: str, variants: tuple[Variant, ...], limits: str, **more: Any) -> Experiment:
    """Options of the small preset beside each other."""
    usual: dict[str, Any] = {
        "seeds": 2,
        "conclude": defer(f"{_STUDY}.experiments.conclude", "conclude_options"),
        "draw": defer(f"{_STUDY}.experiments.draw", "draw_options"),
    }
    return Experiment(
        name=name,
        question=question,
        preset=SMALL,
        variants=variants,
        changes=COMMON,
        minutes=2,
        limits=f"{BEYOND_LIMITS} {limits}",
        **{**usual, **more},
    )


def _operator(name: str, meaning: str, operator: str, modulus: int = N_ELEMENTS, **more: Any) -> Variant:
    return Variant(name, meaning, {"task.operator": operator, "task.modulus": modulus, **more})


def _borrow(variant: Variant) -> Variant:
    """A variant that is the preset as it is, which the modulus experiment trains."""
    return replace(variant, borrowed=("modulus", "modulus-31"))


def _layers(name: str, meaning: str, n_layers: int, mlp_layers: list[int]) -> Variant:
    return Variant(name, meaning, {"model.n_layers": n_layers, "model.mlp_layers": mlp_layers})


def _identity(name: str, meaning: str, *paths: str) -> Variant:
    return Variant(name, meaning, {**IDENTITY_GAIN, **{f"model.identity_{path}": True for path in paths}})


def _width(width: int) -> Variant:
    changes = {"model.d_model": width, "model.d_head": width, "model.d_mlp": 4 * width}
    return Variant(f"width-{width}", f"a residual stream of {width}", changes, labels={"width": float(width)})


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="assign-add-seeds",
        question="Do seeds of the published preset learn alike, and do the claims about one training hold in each?",
        preset="assign-add",
        variants=(Variant("published", "the preset as published"),),
        seeds=8,
        changes={"training.checkpoints.every": 250},
        minutes=28,
        limits=(
            "Checkpoints are saved each 250 steps, so that parts are patched between checkpoints 250 to 750 steps apart; "
            "the same pairs are kept with every seed."
        ),
        conclude=defer(f"{_STUDY}.experiments.seeds", "conclude_seeds"),
        draw=defer(f"{_STUDY}.experiments.draw", "draw_options"),
        measure=defer(f"{_STUDY}.experiments.seeds", "measure_seeds"),
    ),
    _sweep("pair-fraction", FRACTION, FRACTIONS, RECORDED, minutes=25),
    _sweep("two-variable-frequency", FREQUENCY, FREQUENCIES, RECORDED, minutes=25),
    _sweep(
        "two-variable-rows",
        FREQUENCY,
        FREQUENCIES,
        {**RECORDED, **REMOVED},
        minutes=25,
        **_ROWS,
        limits=f"{LIMITS} {ROWS_LIMITS}",
    ),
    _sweep(
        "pair-fraction-small",
        FRACTION,
        SMALL_FRACTIONS,
        {**SMALL_RECORDED, "training.steps": 1_000},
        minutes=0.3,
        preset=SMALL,
    ),
    _sweep(
        "two-variable-frequency-small",
        FREQUENCY,
        SMALL_FREQUENCIES,
        {**SMALL_RECORDED, FRACTION: 0.8, "training.steps": 2_500},  # of pairs, so that adding is no obstacle
        minutes=0.8,
        preset=SMALL,
    ),
    _sweep(
        "two-variable-rows-small",
        FREQUENCY,
        SMALL_FREQUENCIES,
        {**SMALL_RECORDED, **REMOVED, FRACTION: 0.8, "training.steps": 2_500},
        minutes=0.8,
        preset=SMALL,
        **_ROWS,
        limits=f"{SMALL_LIMITS} {ROWS_LIMITS}",
    ),
    _beyond(
        "modulus",
        "For how many numbers does a model that adds also compose?",
        sweep_variants("task.modulus", MODULI, "modulus"),
        "A larger modulus has more pairs to learn from and more numbers to tell apart: both change.",
        sweeps="task.modulus",
    ),
    _beyond(
        "operators",
        "Does composition need addition, or any operator that the model can learn?",
        (
            _operator("plus", "a + b modulo 24", "+"),
            _operator("minus", "a − b modulo 24: order matters", "-"),
            _operator("times", "a · b modulo 24, where many factors have a divisor in common with 24", "*"),
            _operator("times-prime", "a · b modulo 23, a prime: all factors but 0 can be undone", "*", 23),
            _operator("dihedral", "the 24 symmetries of a polygon with twelve corners: order matters", "dihedral"),
            _operator("symmetric", "the 24 orders of four letters: order matters", "symmetric"),
            _operator(
                "minus-two-heads",
                "a − b modulo 24, with two heads a layer: one could follow each operand",
                "-",
                **{"model.n_heads": 2},
            ),
        ),
        "All but one have 24 elements and the same trained pairs; modulo 23 there are fewer of both.",
    ),
    _beyond(
        "variables",
        "How many variables can there be?",
        tuple(
            _borrow(variant) if variant.name == "variables-8" else variant
            for variant in sweep_variants("task.n_variables", N_VARIABLES, "variables")
        ),
        "Two variables are barred from either position whatever their number, so with four none stands in both.",
        sweeps="task.n_variables",
    ),
    _beyond(
        "layers",
        "How many layers does composition need, and what do more layers, MLPs or heads change?",
        (
            _layers("one-layer", "one layer, with an MLP", 1, [0]),
            _borrow(_layers("two-layers", "two layers, an MLP in the second: the preset's shape", 2, [1])),
            _layers("two-mlps", "two layers, an MLP in both", 2, [0, 1]),
            _layers("three-layers", "three layers, an MLP in the third", 3, [2]),
            Variant("two-heads", "two layers of two heads", {"model.n_heads": 2}),
        ),
        "More layers or heads are also more parameters.",
    ),
    _beyond(
        "identity-sums",
        "Does identity-scaled attention make sums with variables learned from fewer examples?",
        (
            _borrow(Variant("off", "no identity-scaling term: the preset's attention")),
            _identity("qk", "the identity-scaling term in the scores alone", "qk"),
            _identity("vo", "the identity-scaling term in the outputs alone", "vo"),
            _identity("both", "identity-scaling terms in scores and outputs", "qk", "vo"),
        ),
        "One gain of the identity-scaling terms, that of the binding experiments, at which they learn twenty times as fast "
        "as other numbers of their size.",
        seeds=6,
        conclude=defer(f"{_STUDY}.experiments.conclude", "conclude_identity_sums"),
        measure=defer(f"{_STUDY}.experiments.measure", "measure_identity_sums"),
    ),
    _beyond(
        "coefficient-width",
        "Does the local learning coefficient of a model that adds grow with its width?",
        tuple(_width(width) for width in WIDTHS),
        "The narrowest model does not learn sums with variables in these steps, and losses end apart, on which the coefficient "
        "depends: it falls as answers become sure. Its level depends on how strongly chains are drawn back; two choices are shown.",
        seeds=3,
        conclude=defer(f"{_STUDY}.experiments.width", "conclude_widths"),
        draw=defer(f"{_STUDY}.experiments.width", "draw_widths"),
        measure=defer(f"{_STUDY}.experiments.width", "measure_widths"),
    ),
)
