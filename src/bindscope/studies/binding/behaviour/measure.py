"""What a run answers to a fixed set of programs at every saved checkpoint, and what its mistakes depend on.

Everything about behaviour at one checkpoint, or between two, is read off ``predictions`` without running a model. The
programs are those that ``bindscope behaviour RUN --n 300 --seed 0`` draws, so that command gives the same tables.

>>> dataset = library.fill("predictions").dataset
>>> confusion(predictions_at(dataset, 600))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.studies.framework.measuring import PACKED, hashes_of, known_parts, parts_of_steps
from bindscope.studies.framework.results import CHECKPOINT, Context, Result, every_step

if TYPE_CHECKING:
    from bindscope.measures.binding.importance import Target
    from bindscope.measures.binding.predictions import Predictions
    from bindscope.model.transformer import Transformer
    from bindscope.runs.directory import Run
    from bindscope.tasks.task import Batch

N_PROGRAMS = 300
LEVEL = 0.004  # probabilities are saved in steps of this, one byte each
ATTRIBUTE, RULE = "attribute_", "rule_"  # what the names of such coordinates start with
TARGETS: tuple[Target, ...] = ("right", "line_1")


def compute_predictions(context: Context) -> xr.Dataset:
    """Over (step, program): ``predicted`` (the digit, −1 for no digit), ``source`` (the earliest line that assigns it, 0
    for none), ``probability`` of the right answer and ``line_1_probability`` of line 1's constant.

    Checkpoints that were measured before, and have not changed since, are not measured again.
    """
    run = context.run
    batch = sample_programs(run, context.rng, context.n)
    known = {} if context.before is None else _rows_by_checkpoint(context.before)
    rows = parts_of_steps(context, lambda step: _measure(run.checkpoint(step), batch), known)
    dataset = _label(run, batch, rows)
    dataset.attrs = {"title": "predictions", "n": len(batch), "seed": context.seed}
    return dataset


def compute_importance(context: Context) -> xr.Dataset:
    """``explain_step`` at every saved checkpoint, over (step, target, attribute)."""
    run, dataset = context.run, context.found["predictions"]
    known = known_parts(context.before)
    parts = parts_of_steps(context, lambda step: explain_step(run, dataset, step), known)
    joined = xr.concat(parts, xr.IndexVariable("step", dataset.step.values), combine_attrs="drop_conflicts")
    return joined.assign_coords({CHECKPOINT: ("step", hashes_of(run))})


def sample_programs(run: Run, rng: np.random.Generator, n: int) -> Batch:
    """Programs as in training that the model has not been trained on, one query each, about as many at each depth."""
    return run.config.task.sample_evaluation(rng, n)["test"]


def predictions_at(dataset: xr.Dataset, step: int) -> Predictions:
    """The predictions at one saved step, as the measures of behaviour take them."""
    from bindscope.measures.binding.predictions import Predictions

    at = at_step(dataset, step)

    def starting_with(prefix: str) -> dict[str, np.ndarray]:
        names = [str(name) for name in dataset.coords if str(name).startswith(prefix)]
        return {name.removeprefix(prefix): dataset[name].values.astype(np.int64) for name in names}

    return Predictions(
        predicted=at.predicted.values.astype(np.int64),
        answers=dataset.answer.values.astype(np.int64),
        sources=at.source.values.astype(np.int64),
        rules=starting_with(RULE),
        attributes=starting_with(ATTRIBUTE),
    )


def at_step(dataset: xr.Dataset, step: int) -> xr.Dataset:
    """What was measured at a step; another one is refused."""
    if step not in dataset.step.values:
        raise BindscopeError(f"step {step} is not among the {dataset.sizes['step']} that were measured.")
    return dataset.sel(step=step, drop=True)


def accuracy_by_step(dataset: xr.Dataset) -> xr.Dataset:
    """Over (step): ``accuracy``, and how often line 1's constant is given (``line_1``), with 95 % Wilson intervals."""
    from bindscope.measures.stats.fractions import CONFIDENCE, fraction_variables

    n = dataset.sizes["program"]
    right = (dataset.predicted == dataset.answer).sum("program").values  # [step]
    line_1 = (dataset.predicted == dataset.rule_line_1).sum("program").values
    fractions = fraction_variables("accuracy", ["step"], right, n) | fraction_variables("line_1", ["step"], line_1, n)
    attributes = {"title": "accuracy at every checkpoint", "n": n, "confidence": CONFIDENCE}
    return xr.Dataset(fractions, {"step": dataset.step.values}, attributes)


def explain_step(run: Run, dataset: xr.Dataset, step: int) -> xr.Dataset:
    """What being right, and giving line 1's constant, depends on at a step, over (target, attribute); takes a second.

    The folds are those of ``bindscope behaviour RUN --importance right --step STEP --n 300 --seed 0``.
    """
    from bindscope.measures.binding.importance import explain_behaviour

    predictions = predictions_at(dataset, step)
    parts, notes = [], []
    for target in TARGETS:
        rng = np.random.default_rng(int(dataset.attrs["seed"]))
        sample_programs(run, rng, len(predictions))  # leaves the generator where the command's is
        explained = explain_behaviour(predictions, target, rng)
        notes.append(explained.attrs.pop("note"))
        parts.append(explained)
    joined = xr.concat(parts, xr.IndexVariable("target", list(TARGETS)), combine_attrs="drop_conflicts")
    joined["note"] = ("target", np.array(notes, dtype=str))
    return joined


def _measure(model: Transformer, batch: Batch) -> dict[str, np.ndarray]:
    """One row [program] of each variable."""
    from bindscope.measures.binding.predictions import describe_outputs
    from bindscope.measures.evaluation import read_answers
    from bindscope.tasks.binding import outputs_of_digits

    outputs = read_answers(model, batch).astype(float)  # [program, output]
    fractions = np.exp(outputs - outputs.max(1, keepdims=True))
    fractions /= fractions.sum(1, keepdims=True)
    described, rows = describe_outputs(outputs, batch), np.arange(len(batch))
    return {
        "predicted": described.predicted,
        "source": described.sources,
        "probability": _quantise(fractions[rows, batch.targets[:, 0]]),
        "line_1_probability": _quantise(fractions[rows, outputs_of_digits(batch)[described.rules["line_1"]]]),
    }


def _label(run: Run, batch: Batch, rows: Sequence[dict[str, np.ndarray]]) -> xr.Dataset:
    from bindscope.measures.binding.attributes import describe_questions
    from bindscope.tasks.binding import RULES, programs_of

    def stack(name: str, dtype: str) -> Any:
        return (("step", "program"), np.array([row[name] for row in rows], dtype))

    programs, queries = programs_of(batch)
    texts = [programs.program(row, line).text for row, line in enumerate(queries[:, 0])]
    attributes = describe_questions(batch)
    labels = {f"{ATTRIBUTE}{name}": values for name, values in attributes.items()}
    labels |= {f"{RULE}{name.removeprefix('rule_')}": batch.labels[name][:, 0] for name in RULES}
    dataset = xr.Dataset(
        {
            **{name: stack(name, "int8") for name in ("predicted", "source")},
            **{name: stack(name, "float32") for name in ("probability", "line_1_probability")},
        },
        {
            "step": list(run.steps),
            CHECKPOINT: ("step", hashes_of(run)),
            "text": ("program", texts),
            "answer": ("program", attributes["answer"].astype("int8")),
            **{name: ("program", values.astype("int8")) for name, values in labels.items()},
        },
    )
    for name in dataset.data_vars:
        dataset[name].encoding = dict(PACKED)
    for name in ("probability", "line_1_probability"):
        dataset[name].encoding |= {"dtype": "uint8", "scale_factor": LEVEL, "_FillValue": np.uint8(255)}
        dataset[name].attrs["units"] = "fraction"
    return dataset


def _quantise(fractions: np.ndarray) -> np.ndarray:
    return np.round(fractions / LEVEL) * LEVEL


def _rows_by_checkpoint(dataset: xr.Dataset) -> dict[str, dict[str, np.ndarray]]:
    return {
        str(sha256): {str(name): dataset[name].values[index] for name in dataset.data_vars}
        for index, sha256 in enumerate(dataset[CHECKPOINT].values)
    }


RESULTS = (
    Result("predictions", "predictions at every checkpoint", compute_predictions, n=N_PROGRAMS, steps=every_step,
           grows=True),
    Result("importance", "what mistakes depend on", compute_importance, n=N_PROGRAMS, steps=every_step,
           needs=("predictions",), grows=True),
)  # fmt: skip
