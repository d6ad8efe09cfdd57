"""Made-up results of AS13: kernels, ridge regression and trained transformers on a few tasks of 'learnability'."""

import numpy as np
import xarray as xr

LAMBDAS = {
    "xa-ya": 0.09, "aaaa-abcd": 6e-3, "same-different": 3e-3, "aba-abb": 2e-3, "abc-aba": 1e-3, "abcd-abca": 6e-4,
    "aab-aba-unordered": 0.0, "aabb-abab-unordered": 0.0,
}  # fmt: skip
SIZES = (16, 64, 256, 1024)
TRAINED = (128, 256, 512, 1024, 2048)


def made_kernel(**changes):
    """N and ridge regression as the theory has it; a keyword replaces the ridge errors [n] of one task."""
    tasks, errors, shuffled = list(LAMBDAS), [], []
    for task in tasks:
        curve = np.array([error_at(n, LAMBDAS[task]) for n in SIZES])
        curve = np.array(changes.get(task.replace("-", "_"), curve))
        errors.append(np.stack([curve, curve], 1))
        shuffled.append(np.full((len(SIZES), 2), changes.get("shuffled", 1.0)))
    smallest = np.array(list(LAMBDAS.values()))
    known = smallest > 0
    columns = {
        "verdict": (("beta", "task"), [["learnable" if is_known else "not learnable" for is_known in known]]),
        "floor": (("beta", "task"), [np.where(known, 0.0, 1.0)]),
        "ridge_error": (("task", "n", "seed"), errors),
        "shuffled_error": (("task", "n", "seed"), shuffled),
    }
    values = {
        "smallest": smallest,
        "weighted": 2 / np.where(known, smallest, 0.01),
        "half_size": 0.2 / np.where(known, smallest, 0.01),
    }
    for name, value in values.items():
        for ending in ("", "_low", "_high"):
            columns[name + ending] = (("beta", "task"), [value])
    return xr.Dataset(columns, coords={"beta": [3.0], "task": tasks, "n": list(SIZES), "seed": [0, 1]})


def made_learnability(need_of=lambda smallest: 0.6 / smallest):
    """Transformers whose n of half loss is a function of λ; their loss is never below 1 where λ is 0."""
    rows, losses = [], []
    for task, smallest in LAMBDAS.items():
        for n in TRAINED:
            rows.append((f"{task}-plain-{n}", task, n))
            need = need_of(smallest) if smallest else np.inf
            losses.append([1.05 if np.isinf(need) else 1 / (1 + n / need)] * 2)
    names, tasks, sizes = zip(*rows)
    loss = np.array(losses)[:, :, None].repeat(3, 2)
    loss[..., 0] = 0.01  # training sequences are learned
    coordinates = {
        "variant": list(names), "seed": [0, 1], "split": ["train", "validation", "test"],
        "task": ("variant", list(tasks)), "n": ("variant", list(sizes)),
        "model": ("variant", ["plain"] * len(rows)), "heads": ("variant", [4] * len(rows)),
    }  # fmt: skip
    columns = {
        "last_loss": (("variant", "seed", "split"), loss),
        "last_accuracy": (("variant", "seed", "split"), 1 - loss / 2),
        "split_n": ("split", [500, 500, 500]),
    }
    attributes = {"preset": "templates-same-different", "title": "experiment learnability"}
    return xr.Dataset(columns, coords=coordinates, attrs=attributes)


def error_at(n, smallest):
    return 1.0 if smallest == 0 else 1 / (1 + n * smallest / 0.2) ** 2
