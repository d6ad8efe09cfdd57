"""The local learning coefficient at every checkpoint, and restricted to layers and to kinds of questions at some.

``coefficient`` is of all weights on the whole task. ``coefficient_refined`` moves only the weights of one layer, or asks only
some questions (arXiv 2410.02984), over (step, row), around the end of the plateau. Settings are those of ``Sampling`` and the same for all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import xarray as xr

from bindscope.studies.development.packing import pack_small
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.curves import Curve, over_steps
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import measure_every_step, round_bits, steps_around_plateau
from bindscope.studies.framework.results import CHECKPOINT, Context, Result, every_step, with_progress

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

N_EXAMPLES = 1024
N_REFINED = 512
REFINED = {"chains": 3, "draws": 20, "burn_in": 10}
PASSES, REFINED_PASSES = 8, 20  # forward passes of each example, a gradient counted as three
Groups = Callable[[Any], Sequence[str]]  # a task → the kinds of questions that are measured by themselves


def compute_coefficient(context: Context) -> xr.Dataset:
    """λ̂ at every checkpoint on the same examples and with the same noise."""
    from bindscope.measures.learning_coefficient.examples import draw_examples
    from bindscope.measures.learning_coefficient.measure import describe_sampling, measure_coefficient
    from bindscope.measures.learning_coefficient.sampling import Sampling

    run, sampling = context.run, Sampling()
    examples = draw_examples(run.config.task, context.rng, context.n, loss=run.config.training.loss)
    dataset = measure_every_step(
        context, lambda model: _packed(measure_coefficient(model, examples, sampling, seed=context.seed))
    )
    n_parameters = sum(parameter.numel() for parameter in run.checkpoint(run.steps[0]).parameters())
    return pack_small(dataset).assign_attrs(describe_sampling(sampling, examples.n_examples), n_parameters=n_parameters)


def compute_refined(context: Context, groups: Groups) -> xr.Dataset:
    """λ̂ of the weights of a few layers, each alone, on all questions, and of all weights on some questions alone, over (step, row)."""
    from bindscope.measures.learning_coefficient.examples import WHOLE, draw_examples
    from bindscope.measures.learning_coefficient.measure import describe_sampling, measure_coefficient
    from bindscope.measures.learning_coefficient.sampling import Sampling

    run, sampling = context.run, Sampling().changed(**REFINED)
    task = run.config.task
    rows = [(part, WHOLE) for part in chosen_layers(run.config.model.n_layers)] + [
        (WHOLE, data) for data in groups(task)
    ]
    drawn = {
        data: draw_examples(task, context.rng, context.n, data) for data in dict.fromkeys(data for _, data in rows)
    }
    steps = refined_steps(run)
    parts = []
    for step in with_progress(steps, context.on_progress):
        model = run.checkpoint(step)
        measured = [measure_coefficient(model, drawn[data], sampling, part, context.seed) for part, data in rows]
        parts.append(xr.concat(measured, xr.IndexVariable("row", range(len(rows))), combine_attrs="drop"))
    dataset = xr.concat(parts, xr.IndexVariable("step", steps), combine_attrs="drop").drop_vars(["trace", "draw"])
    dataset = _packed(dataset).assign_coords(
        part=("row", [part for part, _ in rows]), data=("row", [data for _, data in rows])
    )
    hashes = [run.manifest.checkpoints[step].sha256 for step in steps]
    return pack_small(dataset.assign_coords({CHECKPOINT: ("step", hashes)})).assign_attrs(
        describe_sampling(sampling, drawn[WHOLE].n_examples)
    )


def refined_steps(run: Run) -> list[int]:
    """Checkpoints around the end of the plateau: one on it, the first two behind it, and the last."""
    return steps_around_plateau(run, [0.5], n_after=2)


def chosen_layers(n_layers: int) -> list[str]:
    """The first, the middle and the last layer."""
    return [f"L{layer}" for layer in sorted({0, n_layers // 2, n_layers - 1})]


def coefficient_results(groups: Groups) -> tuple[Result, ...]:
    """The two results, for a family whose questions come in these groups."""
    return (
        Result("coefficient", "the local learning coefficient", compute_coefficient, revision=2, n=N_EXAMPLES, steps=every_step,
               passes=PASSES, grows=True, on_demand=True),
        Result("coefficient_refined", "the coefficient by layer and question", partial(compute_refined, groups=groups),
               revision=2, n=N_REFINED, steps=refined_steps, passes=REFINED_PASSES, on_demand=True),
    )  # fmt: skip


DRAWINGS = (
    Drawing(
        "coefficient",
        "The local learning coefficient over training, beside accuracy",
        ("coefficient", "trajectory"),
        defer(f"{__package__}.draw", "draw_coefficients"),
    ),
    Drawing(
        "coefficient-refined",
        "The local learning coefficient by layer and by question, around the end of the plateau",
        ("coefficient_refined", "trajectory"),
        defer(f"{__package__}.draw", "draw_refined"),
    ),
)
CURVE = Curve(
    "coefficient",
    "local learning coefficient",
    "How many directions around the checkpoint its loss can tell apart, 95 % interval over chains. It rises while something new is "
    "learned and falls as answers become sure, so its turn is that of the fall. Below 0 the checkpoint is no minimum.",
    "coefficient",
    lambda found: over_steps(found.coefficient, found.coefficient_low, found.coefficient_high),
)


def _packed(dataset: xr.Dataset) -> xr.Dataset:
    """Three digits are enough, and pack small."""
    for name in dataset.data_vars:
        dataset[name] = dataset[name].copy(data=round_bits(dataset[name].values))
    return dataset
