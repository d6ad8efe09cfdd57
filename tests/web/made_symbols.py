"""Datasets of experiments on symbols, made up so that tests know every number."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

from bindscope.studies.framework.experiments import Experiment, find_experiment, save_experiment_dataset


def make_dataset(experiment: Experiment, seeds: int = 2) -> xr.Dataset:
    """What its variants would record if the loss fell with n, faster for models with identity scaling.

    The test loss of seed s is ``expected_loss(labels) + s / 100``; accuracies are one minus that.
    """
    variants = [variant for variant in experiment.variants if not variant.full]
    labels = [variant.labels for variant in variants]
    loss = np.array([[min(1.0, expected_loss(each) + seed / 100) for seed in range(seeds)] for each in labels])
    splits = np.stack([loss / 2, loss, loss], axis=2)  # train, validation, test
    dims, over = ("variant", "seed", "split"), ("variant", "seed", "step", "split")
    curves = np.stack([np.ones_like(splits), splits], axis=2)  # at the first step and at the last
    coords = {
        "variant": [variant.name for variant in variants],
        "seed": range(seeds),
        "split": ["train", "validation", "test"],
    }
    names = dict.fromkeys(name for each in labels for name in each)
    return xr.Dataset(
        {
            "last_loss": (dims, splits),
            "last_accuracy": (dims, 1 - splits),
            "split_loss": (over, curves),
            "split_accuracy": (over, 1 - curves),
            "last_step": (dims[:2], np.full(loss.shape, 100.0)),
            "split_n": ("split", [500, 500, 500]),
            "status": (dims[:2], np.full(loss.shape, "stopped early")),
        },
        coords | {name: ("variant", [each[name] for each in labels]) for name in names},
        {
            "title": f"experiment {experiment.name}",
            "preset": experiment.preset,
            "meanings": json.dumps({variant.name: variant.meaning for variant in variants}),
        },
    )  # fmt: skip


def expected_loss(labels: dict) -> float:
    """Below a tenth from n = 20 on with both scalings, from n = width on without."""
    scale = 2.0 if labels["model"] in ("both", "kq") else 0.1 * float(labels.get("width", 128))
    return float(min(1.0, scale / float(labels["n"])) * 0.99)


def write_dataset(name: str, runs_directory: Path, seeds: int = 2) -> xr.Dataset:
    """Made, and written where a lab looks for it."""
    dataset = make_dataset(find_experiment(name), seeds)
    save_experiment_dataset(dataset, runs_directory / f"experiment-{name}" / f"{name}.nc")
    return dataset
