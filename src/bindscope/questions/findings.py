"""Subspaces, circuits and interventions that were saved, and what they do in this or another checkpoint or run.

A finding carries how its pairs are drawn, so that applied to the checkpoint it comes from it has its saved effect again,
number by number.

>>> save_circuit(Path("chain.safetensors"), opened, step, found, drawing, command)
>>> apply_finding(Path("chain.safetensors"), Opened.at("binding-laptop"), "all")["success"]   # over (step)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bindscope.errors import BindscopeError
from bindscope.interventions.metrics import METRICS
from bindscope.questions.opened import Opened, Steps, require_kind
from bindscope.questions.pairs import draw_pairs
from bindscope.questions.patch import Patch
from bindscope.runs.findings import Finding, read_finding, write_finding
from bindscope.schema import from_mapping

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor

    from bindscope.interventions.circuit import Circuit
    from bindscope.model.transformer import Transformer
    from bindscope.runs.directory import Run

Effect = dict[str, float]
BASIS = "basis"


@dataclass(frozen=True)
class SwappedSubspace:
    """Which subspace is swapped where, and on which pairs."""

    quality: Literal["values", "names"]
    layer: int
    position: str
    n: int
    seed: int
    origin: str = "given"


@dataclass(frozen=True)
class Drawing:
    """Which pairs a circuit is tried on."""

    n: int
    depth: int
    first_root_line: int
    seed: int


def save_subspace(path: Path, run: Run, step: int, swapped: SwappedSubspace, basis: Tensor, command: str) -> Path:
    """Save a subspace [rank, d_model] with its effect."""
    effect = _try_subspace(run.checkpoint(step), run.config.task, swapped, basis)
    return write_finding(path, Finding.on(run, step, "subspace", command, asdict(swapped), effect), {BASIS: basis})


def save_circuit(path: Path, run: Run, step: int, circuit: Circuit, drawing: Drawing, command: str) -> Path:
    """Save a circuit with its effect."""
    if not circuit.moves:
        raise BindscopeError(f"{path}: not written, as no move was found; lower --least-success or --least-loss.")
    moves = [{name: value for name, value in asdict(move).items() if value == value} for move in circuit.moves]
    content = {"circuit": {**asdict(circuit), "moves": moves}, "drawing": asdict(drawing)}
    effect = flatten_effects(_try_circuit(run.checkpoint(step), run.config.task, circuit, drawing))
    return write_finding(path, Finding.on(run, step, "circuit", command, content, effect), {})


def save_patch(path: Path, opened: Opened, question: Patch, command: str) -> Path:
    """Save an intervention at sites with its effect; grids and metrics of one's own are no part of one."""
    check_patch(question, path)
    (step,) = opened.find_steps(question.steps)
    content = {name: value for name, value in question.values().items() if name not in ("run", "steps")}
    effect = _try_patch(opened, question, step)
    return write_finding(path, Finding.on(opened.run, step, "patch", command, content, effect), {})


def check_patch(question: Patch, path: Path) -> None:
    """Refuse what is no intervention at named sites of one model."""
    if not question.sites:
        raise BindscopeError(f"--save {path}: saves an intervention, a set of sites; name them with --site.")
    if question.own_metric is not None:
        raise BindscopeError(
            f"--save {path}: a metric of your own is code, which is not saved; choose another --metric."
        )
    if question.source_step is not None or question.steps == "all" or isinstance(question.steps, tuple):
        raise BindscopeError(f"--save {path}: saves what one checkpoint does; name one --step and no --from-step.")


def apply_finding(path: Path, opened: Opened, steps: Steps = "last") -> xr.Dataset:
    """Each number of a finding's effect over (step) in a run, and as it was saved in the attributes ``saved_…``."""
    import xarray as xr

    finding, tensors = read_finding(path)
    require_kind(opened.run, "programs", opened.name)
    finding.check_fits(opened.run.config.model, opened.name, path)
    measure = _measure_of(path, finding, tensors, opened)
    chosen = opened.find_steps(steps)
    effects = [measure(step) for step in chosen]
    dataset = xr.Dataset(
        {name: ("step", [effect[name] for effect in effects]) for name in effects[0]}, {"step": chosen}
    )
    about = {"kind": finding.kind, "run": opened.name, "found_on": finding.run, "found_at": finding.step}
    hashes = [opened.run.manifest.checkpoints[step].sha256 for step in chosen]
    about["same_weights"] = ", ".join(str(step) for step, sha256 in zip(chosen, hashes) if sha256 == finding.sha256)
    saved = {f"saved_{name}": value for name, value in finding.effect.items() if isinstance(value, int | float)}
    return dataset.assign_attrs(about | saved)


def flatten_effects(effects: Mapping[str, list[float]]) -> Effect:
    """[mean, low, high] by name as three numbers each."""
    return {
        f"{name}{end}": value for name, values in effects.items() for end, value in zip(("", "_low", "_high"), values)
    }


def sample_pairs(task: Any, of: str, n: int, seed: int) -> tuple[Any, Any]:
    """Pairs to fit a subspace on, twice as many as those to test it on."""
    import numpy as np

    from bindscope.tasks.binding import sample_name_pairs, sample_root_pairs

    rng = np.random.default_rng(seed)
    sample: Any = sample_root_pairs if of == "values" else sample_name_pairs
    first_root_line = min(3, max(1, task.lines - task.max_depth))
    return tuple(sample(task, rng, size, first_root_line=first_root_line) for size in (2 * n, n))  # type: ignore[return-value]


def try_circuit(model: Transformer, pairs: Any, circuit: Circuit, seed: int) -> dict[str, list[float]]:
    """What the whole circuit does to fresh pairs: [mean, low, high] of success patched together, of accuracy without
    it, and with nothing but it."""
    import numpy as np

    from bindscope.intervals import wilson_interval
    from bindscope.interventions.circuit import ablate_circuit, patch_circuit
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.outcome import summarise_outcomes
    from bindscope.tasks.binding import named_positions

    positions = named_positions(pairs)
    patched = patch_circuit(model, contrast_pairs(pairs), positions, circuit)
    summary = summarise_outcomes(patched, np.random.default_rng([seed, 2]))
    effects = {"patched": [float(summary[f"success{end}"]) for end in ("", "_low", "_high")]}
    for name, keep in (("without", False), ("alone", True)):
        correct = ablate_circuit(model, pairs.base, positions, circuit, keep=keep).correct.values
        low, high = wilson_interval(correct.sum(), len(correct))
        effects[name] = [float(correct.mean()), float(low), float(high)]
    return effects


def _measure_of(path: Path, finding: Finding, tensors: Mapping[str, Tensor], opened: Opened) -> Callable[[int], Effect]:
    """What a finding does at a step of a run."""
    where, task = f"{path}: content", opened.run.config.task
    if finding.kind == "subspace":
        swapped = from_mapping(SwappedSubspace, finding.content, where)
        if list(tensors) != [BASIS] or tensors[BASIS].shape[-1:] != (finding.shape.d_model,):
            raise BindscopeError(f"{path}: a subspace has one tensor, '{BASIS}' [rank, d_model]; save it again.")
        return lambda step: _try_subspace(opened.load(step), task, swapped, tensors[BASIS])
    if finding.kind == "circuit":
        circuit, drawing = _read_circuit(finding, path)
        return lambda step: flatten_effects(_try_circuit(opened.load(step), task, circuit, drawing))
    metric = finding.content.get("metric")
    if metric not in (None, *METRICS):  # one of a person's own would be loaded, and nothing a file names is executed
        raise BindscopeError(f"{path}: names a metric of its own, {metric!r}, which is not loaded; save it again.")
    try:
        question = Patch(**{name: _tuples(value) for name, value in finding.content.items()}, run=opened.name)
        check_patch(question, path)
    except TypeError as problem:
        raise BindscopeError(f"{path}: its content is no patch ({problem}); save it again.") from None
    return lambda step: _try_patch(opened, question, step)


def _read_circuit(finding: Finding, path: Path) -> tuple[Circuit, Drawing]:
    from bindscope.interventions.circuit import Circuit

    where, content = f"{path}: content", finding.content
    circuit = from_mapping(Circuit, content.get("circuit"), f"{where}.circuit")
    for move in circuit.moves:
        if not (0 <= move.layer < finding.shape.n_layers and 0 <= move.head < finding.shape.n_heads):
            raise BindscopeError(f"{path}: has a move of L{move.layer}.H{move.head}, which its model does not have.")
    return circuit, from_mapping(Drawing, content.get("drawing"), f"{where}.drawing")


def _try_subspace(model: Transformer, task: Any, swapped: SwappedSubspace, basis: Tensor) -> Effect:
    from bindscope.subspaces import find_columns, swap_stream
    from bindscope.subspaces.subspace import Subspace

    _, test = sample_pairs(task, swapped.quality, swapped.n, swapped.seed)
    subspace = Subspace(basis, swapped.quality, swapped.origin)
    top = (
        swap_stream(model, test, swapped.layer, find_columns(test, swapped.position), subspace.swap).argmax(-1).numpy()
    )
    return {
        "success": float((top == test.counterfactual_answers).mean()),
        "kept": float((top == test.base_answers).mean()),
    }


def _try_circuit(model: Transformer, task: Any, circuit: Circuit, drawing: Drawing) -> dict[str, list[float]]:
    pairs = draw_pairs(task, drawing.n, drawing.depth, drawing.first_root_line, drawing.seed).pairs
    return try_circuit(model, pairs, circuit, drawing.seed - 1)


def _try_patch(opened: Opened, question: Patch, step: int) -> Effect:
    from dataclasses import replace

    dataset = replace(question, steps=step).answer(opened)
    means = {str(name): float(values.mean()) for name, values in dataset.data_vars.items() if "pair" in values.dims}
    return {name: value for name, value in means.items() if math.isfinite(value)}


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
