"""What the kernel says of a task, and whether it foretells how many sequences a trained transformer needs.

Three numbers of N are held against the n of half loss: its smallest eigenvalue λ, which bounds the error whatever the
labels are; yᵀN⁻¹y, which knows the labels y; and the n at which kernel ridge regression itself would halve its error.
Some n are known by a bound only (the curve starts below a half, or ends above it); so ranks are compared with bounds
(``measures/stats/ranks.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.stats.crossings import Crossing
from bindscope.measures.stats.ranks import Bounds, Rank, rank_tasks
from bindscope.studies.framework.results import with_progress
from bindscope.studies.symbols.efficiency.curves import HALF, curve_of, half_loss_n
from bindscope.studies.symbols.kernel.define import TASKS, LearnedTask, find_task

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.experiments import Cell
    from bindscope.theory.kernel import Estimate, KernelSettings

COMMON = 512  # the n that most tasks were trained at
PREDICTORS: Mapping[str, str] = {
    "smallest": "1/λ, the smallest eigenvalue of N",
    "weighted": "yᵀN⁻¹y",
    "half_size": "the kernel's own n of half loss",
    "length": "the length of the sequences",
}


def kernel_settings(task: LearnedTask, beta: float = 3.0, **more: Any) -> KernelSettings:
    """The kernel of a model like the one that learns the task: with positions as large as symbols, or none."""
    from bindscope.theory.kernel import KernelSettings

    return KernelSettings(beta=beta, gamma=1.0 if task.positions else 0.0, **more)


def describe_kernel(task: LearnedTask, settings: KernelSettings) -> dict[str, Any]:
    """What N says: λ, yᵀN⁻¹y and the n of half loss with intervals, the verdict, and the error no n goes below."""
    from bindscope.theory.kernel_learnable import learnable
    from bindscope.theory.kernel_ridge import half_loss_size

    report, labels = learnable(task.templates, task.labels, settings), np.array(task.labels)
    found: dict[str, Any] = {"verdict": report.verdict, "floor": float(report.label_fraction or 0.0) ** 2}
    estimates: dict[str, Estimate | None] = {"smallest": report.smallest, "weighted": None, "half_size": None}
    if report.verdict == "learnable":
        expect = settings.phi.expect

        def weigh(same: np.ndarray, fresh: np.ndarray) -> np.ndarray:
            return np.array(
                labels @ np.linalg.pinv(expect(same[:, None], same[None, :], fresh), hermitian=True) @ labels
            )

        estimates["weighted"] = report.kernel.estimate(weigh)
        estimates["half_size"] = half_loss_size(report.kernel, task.labels)
    for name, estimate in estimates.items():
        ends = (np.inf,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
        found |= {name: float(ends[0]), f"{name}_low": float(ends[1]), f"{name}_high": float(ends[2])}
    return found


def measure_kernels(runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None) -> xr.Dataset:
    """For the experiment's dataset: what the kernel says of the task of each variant."""
    names = list(dict.fromkeys(cell.variant for cell in runs))
    tasks = [next(task for task in TASKS if _is_variant(name, task)) for name in names]
    found = {
        task.name: describe_kernel(task, kernel_settings(task))
        for task in with_progress(list(dict.fromkeys(tasks)), on_progress)
    }
    numbers = ("smallest", "smallest_low", "smallest_high", "weighted", "half_size", "verdict")
    columns = {f"kernel_{name}": ("variant", [found[task.name][name] for task in tasks]) for name in numbers}
    return xr.Dataset(columns, coords={"variant": names})


def half_sizes(dataset: xr.Dataset, model: str = "plain") -> dict[str, Crossing]:
    """The n of half loss of each task that the model was trained on."""
    sizes = {}
    for task in dict.fromkeys(map(str, dataset.task.values)):
        models = set(map(str, dataset.model.values[dataset.task.values == task]))
        if model in models and curve_of(dataset, model, task=task).points:
            sizes[task] = half_loss_n(dataset, model, task=task)
    return sizes


def losses_at(dataset: xr.Dataset, n: int = COMMON, model: str = "plain") -> dict[str, float]:
    """The mean test loss of each task at one n, where it was trained."""
    found = {}
    for task in half_sizes(dataset, model):
        point = curve_of(dataset, model, task=task).at(n)
        if point is not None:
            found[task] = point.value
    return found


def exactly(values: Mapping[str, float]) -> dict[str, Bounds]:
    """Numbers that are known, as bounds."""
    return {name: (value, value) for name, value in values.items()}


def rank_predictors(kernels: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, Bounds]) -> list[Rank]:
    """Every predictor against the n that each task needs, over the tasks whose labels the kernel can learn."""
    ranks = [rank_tasks(name, predicted_by(kernels, name), sizes) for name in PREDICTORS]
    return [rank for rank in ranks if rank is not None]


def predicted_by(kernels: Mapping[str, Mapping[str, Any]], predictor: str) -> dict[str, float]:
    """A predictor's value for each task, such that more means harder; infinite where the kernel cannot learn it."""
    values = {}
    for task, numbers in kernels.items():
        if numbers["verdict"] != "learnable":
            values[task] = np.inf
        elif predictor == "length":
            values[task] = float(_length(task))
        else:
            values[task] = 1 / float(numbers[predictor]) if predictor == "smallest" else float(numbers[predictor])
    return values


def kernels_in(dataset: xr.Dataset) -> dict[str, dict[str, Any]]:
    """What the kernel says of each task, from the experiment's own dataset, the largest λ first."""
    columns = ("verdict", "smallest", "weighted", "half_size")
    rows = {str(task): row for row, task in enumerate(dataset.task.values)}
    found = {task: {name: dataset[f"kernel_{name}"].values[row] for name in columns} for task, row in rows.items()}
    return dict(sorted(found.items(), key=lambda each: -float(each[1]["smallest"])))


def kernels_of(kernel: xr.Dataset) -> dict[str, dict[str, Any]]:
    """… and from the result ``kernel`` at one β."""
    columns = ("verdict", "smallest", "weighted", "half_size")
    return {
        str(task): {name: kernel[name].values[row] for name in columns} for row, task in enumerate(kernel.task.values)
    }


def ridge_bounds(kernel: xr.Dataset) -> dict[str, Bounds]:
    """The n from which on ridge regression's mean error is below a half, interpolated in log n, or what bounds it."""
    sizes, bounds = kernel.n.values.astype(float), {}
    for task in kernel.task.values:
        errors = kernel.ridge_error.sel(task=task).mean("seed").values
        above = np.flatnonzero(errors > HALF)
        if not len(above) or above[-1] == len(sizes) - 1:
            bounds[str(task)] = (sizes[-1], np.inf) if len(above) else (0.0, float(sizes[0]))
            continue
        ends = slice(above[-1], above[-1] + 2)
        crossed = float(np.exp(np.interp(-HALF, -errors[ends], np.log(sizes[ends]))))
        bounds[str(task)] = (crossed, crossed)
    return bounds


def conclude_learnability(dataset: xr.Dataset) -> str:
    """Each task with what the kernel says and what trained transformers needed, then the rank correlations."""
    kernels, plain, both = kernels_in(dataset), half_sizes(dataset), half_sizes(dataset, "both")
    sentences = [_describe_task(task, kernels[task], plain, both) for task in kernels]
    needs = {
        "the transformer's n of half loss": {task: size.bounds for task, size in plain.items()},
        f"its loss at n = {COMMON}": exactly(losses_at(dataset)),
        "the n of half loss with identity scaling": {task: size.bounds for task, size in both.items()},
    }
    for words, bounds in needs.items():
        ranks = rank_predictors(kernels, bounds)
        if ranks:
            listed = "; ".join(f"{PREDICTORS[rank.predictor]}: {rank}" for rank in ranks)
            sentences.append(f"Rank correlation with {words}, over {ranks[0].n_tasks} tasks: {listed}.")
    return " ".join(sentences)


def _describe_task(
    name: str, kernel: Mapping[str, Any], plain: Mapping[str, Crossing], both: Mapping[str, Crossing]
) -> str:
    task = find_task(name)
    needs = [
        f"{word} {sizes[name]}" for word, sizes in (("transformer", plain), ("identity scaling", both)) if name in sizes
    ]
    says = f"λ = {float(kernel['smallest']):.2g}" if kernel["verdict"] == "learnable" else "N singular"
    labels = "" if len(task.templates) == 2 else f" labelled {', '.join(f'{label:+g}' for label in task.labels)}"
    return f"{task.title}{labels}: {says}; half the loss from n = {', '.join(needs) or 'unknown'}."


def _is_variant(name: str, task: LearnedTask) -> bool:
    model, _, n = name.removeprefix(f"{task.name}-").rpartition("-")
    return name.startswith(f"{task.name}-") and model in ("plain", "both") and n.isdigit()


def _length(name: str) -> int:
    from bindscope.tasks.templates import Template

    return len(Template.parse(find_task(name).templates[0]))
