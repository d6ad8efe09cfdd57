"""What the evaluations of a binding run recorded, beyond its splits, and the phases in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.binding.phases import PhaseCriterion, PhaseCurves, detect_phases, lowest_accuracy

if TYPE_CHECKING:
    from bindscope.measures.phases import Phase

OF_TEST = ("split_accuracy", "split_chance", "split_n")
PHASE_VARIABLES = (*OF_TEST, "follows_chain", "follows_early_lines", "accuracy_by_depth")  # what phases are found in


def find_phases(dataset: xr.Dataset, criterion: PhaseCriterion | None = None) -> list[Phase]:
    """The phases in a trajectory."""
    test = dataset[list(OF_TEST)].sel(split="test")
    curves = PhaseCurves(
        steps=dataset.step.values,
        accuracy=test.split_accuracy.values,
        follows_chain=dataset.follows_chain.values,
        follows_early_lines=dataset.follows_early_lines.values,
        worst_depth=lowest_accuracy(dataset.accuracy_by_depth.values),
        chance=float(test.split_chance),
        n_examples=int(test.split_n),
    )
    return detect_phases(curves, criterion)


def binding_variables(splits: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables and coordinates of a trajectory, from the scores of the test split at each evaluation."""
    first = splits[0]
    rules, n_lines = list(first["agreement"]), len(first["accuracy_by_root_line"])

    def gather(key: str) -> np.ndarray:
        return np.array([split[key] for split in splits], dtype=float)

    def gather_misleading(key: str) -> np.ndarray:
        return np.array([split["misleading"][key] for split in splits], dtype=float)

    variables = {
        "accuracy_by_depth": (("step", "depth"), gather("accuracy_by_depth")),
        "n_by_depth": ("depth", np.array(first["n_by_depth"])),
        "accuracy_by_root_line": (("step", "root_line"), gather("accuracy_by_root_line")),
        "n_by_root_line": ("root_line", np.array(first["n_by_root_line"])),
        "agreement": (("step", "rule"), np.array([[p["agreement"][r] for r in rules] for p in splits], dtype=float)),
        "rule_accuracy": ("rule", np.array([first["rule_accuracy"][rule] for rule in rules], dtype=float)),
        "prediction_source": (("step", "source"), gather("prediction_source")),
        "answer_source": ("source", np.array(first["answer_source"], dtype=float)),
        "follows_chain": ("step", gather_misleading("follows_chain")),
        "follows_early_lines": ("step", gather_misleading("follows_early_lines")),
        "n_misleading": ((), int(first["misleading"]["n"])),
        "digit_share": ("step", gather("digit_share")),
        "mean_rank": ("step", gather("mean_rank")),
    }
    coordinates = {
        "depth": np.arange(1, len(first["accuracy_by_depth"]) + 1),
        "root_line": np.arange(1, n_lines + 1),
        "rule": rules,
        "source": [*(f"line {line}" for line in range(1, n_lines + 1)), "none"],
    }
    return variables, coordinates
