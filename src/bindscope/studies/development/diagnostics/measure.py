"""Plateau diagnostics at every checkpoint: how alike and repetitive, how spread out, how noisy and how steep."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from bindscope.studies.development.packing import pack_small
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.curves import Curve, NotMade, over_steps
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import measure_every_step, round_bits
from bindscope.studies.framework.results import Context, Result, every_step

N_EXAMPLES, N_BATCHES = 64, 8
PASSES = 24  # of each example at each checkpoint, a gradient counted as three

# the number that stands for each diagnostic: its name → title, and where it is read
HEADLINES: dict[str, tuple[str, dict[str, object]]] = {
    "repetition": ("repetition of answers", {}),
    "collapse": ("collapse: cosine between positions, last layer", {"layer": -1}),
    "answer_collapse": ("collapse: cosine between answers, last layer", {"layer": -1}),
    "participation": ("participation ratio of the residual stream, last layer", {"layer": -1}),
    "entropy_spread": ("spread of head entropies", {}),
    "signal_to_noise": ("gradient signal-to-noise", {"group": 0}),
    "fisher": ("Fisher trace", {}),
    "hessian": ("Hessian trace", {}),
}


def compute_diagnostics(context: Context) -> xr.Dataset:
    """All diagnostics at every checkpoint on the same minibatches."""
    from bindscope.measures.diagnostics.measure import measure_diagnostics
    from bindscope.measures.learning_coefficient.examples import draw_examples

    run = context.run
    loss = run.config.training.loss
    examples = draw_examples(run.config.task, context.rng, context.n, loss=loss, n_batches=N_BATCHES)

    def measure(model: object) -> xr.Dataset:
        found = measure_diagnostics(model, examples, context.seed)  # type: ignore[arg-type]
        return found.map(lambda values: values.copy(data=round_bits(values.values)))

    dataset = pack_small(measure_every_step(context, measure))
    return dataset.assign_attrs(n_examples=examples.n_examples, n_batches=N_BATCHES)


def read_headline(dataset: xr.Dataset, name: str) -> xr.Dataset:
    """The number that stands for a diagnostic, ``value``, ``low`` and ``high`` over (step)."""
    _, where = HEADLINES[name]
    chosen = dataset.isel(where)  # type: ignore[arg-type]
    values = chosen[name]
    if not values.notnull().any():
        raise NotMade
    return over_steps(values, chosen[f"{name}_low"], chosen[f"{name}_high"])


def _reading(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda dataset: read_headline(dataset, name)


EXPLAINS = {
    "repetition": "How often two answers to one program (two examples, where each has one answer) are the same token.",
    "collapse": "Mean cosine between the residual streams at two positions of an example after the last layer; 1: all parallel.",
    "answer_collapse": "The same between the answers of two examples; 1: the answer's position does not depend on the example.",
    "participation": "(Σλ)²/Σλ² of the eigenvalues of the stream's covariance after the last layer: how many directions vary.",
    "entropy_spread": "Standard deviation over all heads of the entropy of their attention from the answers, in nats.",
    "signal_to_noise": "Length of the mean gradient of all parameters over its spread from minibatch to minibatch.",
    "fisher": "E|∇ log p(y|x)|² over answers that the model draws itself: how much the answers depend on the weights.",
    "hessian": "Hutchinson's estimate of the trace of the loss's Hessian: how steep the loss is around the checkpoint.",
}

CURVES = tuple(
    Curve(
        name.replace("_", "-"),
        title,
        f"{EXPLAINS[name]} 95 % interval over minibatches.",
        "diagnostics",
        _reading(name),
    )
    for name, (title, _) in HEADLINES.items()
)
RESULTS = (
    Result("diagnostics", "plateau diagnostics", compute_diagnostics, n=N_EXAMPLES, steps=every_step, passes=PASSES, grows=True),
)  # fmt: skip
DRAWING = Drawing(
    "diagnostics",
    "Plateau diagnostics over training, and which of them leaves its range before the answers change",
    ("diagnostics", "trajectory"),
    defer(f"{__package__}.draw", "draw_diagnostics"),
)
