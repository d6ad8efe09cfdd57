"""The experiments of study 2, as data: the two sweeps of the paper, each at its own size and in a smaller model.

The sweeps at the paper's size are 20 values and three seeds of 30,000 steps each, days on one core: they are for many
(``--jobs``, ``--cluster``). Those of ``assign-add-small`` ask the same questions of a model that learns in minutes.
"""

from __future__ import annotations

from typing import Any

from bindscope.studies.framework.experiments import Experiment, defer, sweep_variants

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
    "training.evaluate_every": 500, "training.checkpoints.every": 30_000,
}  # fmt: skip
SMALL_RECORDED: dict[str, Any] = {"training.checkpoints.every": 30_000}
FRACTION_QUESTION = "What share of all pairs must training show before sums of the others come out right?"
FREQUENCY_QUESTION = "How often must training show sums of two variables before they come out right?"
_CONCLUSIONS, _FIGURES = (f"bindscope.studies.assign_add.experiments.{module}" for module in ("conclude", "draw"))
SMALL_LIMITS = (
    "A smaller model, modulus and set of variables than the paper's, and fewer steps: its threshold is its own, and "
    "only that there is one speaks of the paper's claim. The same pairs are kept with every seed."
)
LIMITS = "The same pairs are kept with every seed; a value that needs more than the steps given counts as failing."

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="pair-fraction",
        question=FRACTION_QUESTION,
        preset="assign-add",
        variants=sweep_variants(FRACTION, FRACTIONS, "fraction"),
        sweeps=FRACTION,
        seeds=3,
        changes={**RECORDED, "training.steps": 30_000},
        minutes=25,
        limits=LIMITS,
        conclude=defer(_CONCLUSIONS, "conclude_pair_fraction"),
        draw=defer(_FIGURES, "draw_pair_fraction"),
    ),
    Experiment(
        name="two-variable-frequency",
        question=FREQUENCY_QUESTION,
        preset="assign-add",
        variants=sweep_variants(FREQUENCY, FREQUENCIES, "frequency"),
        sweeps=FREQUENCY,
        seeds=3,
        changes={**RECORDED, "training.steps": 30_000},
        minutes=25,
        limits=LIMITS,
        conclude=defer(_CONCLUSIONS, "conclude_two_variable_frequency"),
        draw=defer(_FIGURES, "draw_two_variable_frequency"),
    ),
    Experiment(
        name="pair-fraction-small",
        question=FRACTION_QUESTION,
        preset="assign-add-small",
        variants=sweep_variants(FRACTION, SMALL_FRACTIONS, "fraction"),
        sweeps=FRACTION,
        seeds=3,
        changes={**SMALL_RECORDED, "training.steps": 1_000},
        minutes=0.3,
        limits=SMALL_LIMITS,
        conclude=defer(_CONCLUSIONS, "conclude_pair_fraction"),
        draw=defer(_FIGURES, "draw_pair_fraction"),
    ),
    Experiment(
        name="two-variable-frequency-small",
        question=FREQUENCY_QUESTION,
        preset="assign-add-small",
        variants=sweep_variants(FREQUENCY, SMALL_FREQUENCIES, "frequency"),
        sweeps=FREQUENCY,
        seeds=3,
        changes={**SMALL_RECORDED, FRACTION: 0.8, "training.steps": 2_500},  # of pairs, so that adding is no obstacle
        minutes=0.8,
        limits=SMALL_LIMITS,
        conclude=defer(_CONCLUSIONS, "conclude_two_variable_frequency"),
        draw=defer(_FIGURES, "draw_two_variable_frequency"),
    ),
)
