"""The orthogonality argument, measured: which symbols the first steps of training teach a model of each width to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.runs.placement import CPU, Placement
from bindscope.studies.framework.experiments import cell_config
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context, OnProgress, Result, with_progress
from bindscope.studies.symbols.experiments.define import copy_variant

if TYPE_CHECKING:
    from bindscope.runs.config import RunConfig

MODELS = ("plain", "both")
WIDTHS = (32, 64, 128, 256, 512)
N = 128
SEEDS = 3
STEPS = (1, 4)  # and 0, the gradient at the start
SPLITS = ("train", "test")
MOST_WIDTH, MOST_N = 4096, 8192


def compute_directions(context: Context) -> xr.Dataset:
    """At the sizes of the experiment ``copy``, with three seeds from the context's on."""
    seeds = range(context.seed, context.seed + SEEDS)
    return measure_directions(WIDTHS, context.n or N, seeds, on_progress=context.on_progress)


def measure_directions(
    widths: Sequence[int],
    n: int,
    seeds: Sequence[int],
    steps: Sequence[int] = STEPS,
    on_progress: OnProgress | None = None,
    placement: Placement = CPU,
) -> xr.Dataset:
    """Train a few steps at each width and read what they changed in Σ_h W_V W_O (``measures/templates/copying.py``).

    Over (model, width, seed, step, layer): the readings and fractions, ``ratio`` (unseen over seen) and ``head_fraction``, the
    mean over heads of the fraction in the span of training symbols. Step 0 is the gradient at the start, later ones are
    Adam's. Over (model, width, seed, step, split): ``accuracy``. ``predicted_ratio`` (model, width, seed) is that of one
    plain gradient step in the simplified model (``theory/copying.py``), ``simple_ratio`` the same drawn at random.
    Models are trained where ``placement`` says and read on the CPU.
    """
    _check(widths, n, steps)
    placement = placement.check()
    cells = [(model, width, seed) for width in sorted(set(widths)) for model in MODELS for seed in seeds]
    rows = [
        _measure_cell(cell_of(model, width, n, seed), sorted(set(steps)), placement).expand_dims(
            model=[model], width=[width], seed=[seed]
        )
        for model, width, seed in with_progress(cells, on_progress)
    ]
    dataset = xr.combine_by_coords(rows, combine_attrs="drop")
    assert isinstance(dataset, xr.Dataset)
    dataset = dataset.sel(model=list(MODELS))
    dataset["ratio"] = dataset.unseen / dataset.seen
    dataset.attrs = {
        "title": "what early training changes in a model that copies",
        "source": "bindscope copying",
        "n": n,
        "steps": int(np.max(steps)),
    }
    if placement != CPU:
        dataset.attrs |= {"measured_on": placement.device, "dtype": placement.dtype}
    return dataset


def _check(widths: Sequence[int], n: int, steps: Sequence[int]) -> None:
    if not widths or not all(2 <= width <= MOST_WIDTH for width in widths):
        raise BindscopeError(f"widths: give one or more between 2 and {MOST_WIDTH:,}, got {list(widths)}.")
    if not 2 <= n <= MOST_N:
        raise BindscopeError(f"n: must lie between 2 and {MOST_N:,} training symbols, got {n}.")
    if not steps or min(steps) < 1:
        raise BindscopeError(f"steps: give one or more from 1 on, got {list(steps)}.")


def cell_of(model: str, width: int, n: int, seed: int) -> RunConfig:
    """The run of the experiment ``copy`` with these sizes, whether or not it is one of its variants."""
    variant = copy_variant(model, width, n)
    return cell_config(find_preset("templates-copy").config, variant.changes, variant.name, seed)


def _measure_cell(config: RunConfig, steps: Sequence[int], placement: Placement) -> xr.Dataset:
    """Over (step, layer): one model, trained from its start to the last of ``steps``."""
    import torch

    from bindscope.measures.templates.early_copying import EarlyTraining, predict_early
    from bindscope.model.transformer import Transformer

    task: Any = config.task
    model = placement.place(Transformer(config.model, torch.Generator().manual_seed(config.seed)))
    training = EarlyTraining.start(model, task, config.training.optimizer)
    found, accuracy = [training.read_gradient()], [training.accuracy()]
    for step in range(1, max(steps) + 1):
        training.update()
        if step in steps:
            found.append(training.read_change())
            accuracy.append(training.accuracy())
    names = found[0][0].keys()
    values = {name: (("step", "layer"), np.array([[part[name] for part in row] for row in found])) for name in names}
    return xr.Dataset(
        {
            **values,
            "accuracy": (("step", "split"), np.array(accuracy)),
            **predict_early(config.model, training.n_seen, np.random.default_rng(config.seed)),
            "n_symbols": training.n_seen,
        },
        {"step": [0, *steps], "layer": range(config.model.n_layers), "split": list(SPLITS)},
    )


RESULTS: tuple[Result, ...] = (
    Result(
        "copy_directions",
        "which symbols the first steps teach a model to copy",
        compute_directions,
        n=N,
        slow=True,
    ),
)
