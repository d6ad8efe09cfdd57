"""Probes: can the value of every variable be read off the residual stream at one single position?

For each layer and position one probe per variable (26 letters × 10 digits) is fitted on some programs and tested on
others. Only variables that a program assigns count for it.

- ``accuracy``       the fraction of (program, variable) whose digit is right;
- ``late_accuracy``  the same over variables whose chain starts on line 3 or later. With chains drawn as in the paper
                     many variables hold the constant of line 1, so a stream that carries that one digit already
                     scores well: see ``line_1_accuracy``;
- ``seen_accuracy``  the same over variables whose line is complete at this position;
- ``state``          the fraction of programs all of whose variables are right at once. This definition is ours: the paper
                     gives a number for the whole state and not how it is counted.

Probes: ``linear`` is ridge regression to one-hot digits in closed form, the largest output wins; ``logistic`` is a
softmax classifier and ``mlp`` one with a hidden layer, both trained by Adam. The two are many times slower, so give
them few positions. Layer k means the residual stream entering layer k, and n_layers the residual stream that leaves the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.model.run import check_evaluating, to_host
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import columns_of, programs_of
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH, QUERY_WIDTH, name_at
from bindscope.tasks.binding.program import LETTERS
from bindscope.tasks.task import Batch

PROBES = ("linear", "logistic", "mlp")
CONDITIONS = ("trained", "shuffled labels", "untrained model")
N_DIGITS, N_LETTERS = 10, len(LETTERS)
TOKENS_AT_ONCE = 1 << 14  # how many go through a layer together; bounds memory, never changes a number
MEASURES = ("accuracy", "late_accuracy", "seen_accuracy", "state")
BOUNDS = tuple(f"{name}_{end}" for name in ("accuracy", "late_accuracy") for end in ("low", "high"))


@dataclass(frozen=True)
class ProbePlan:
    """How probes are fitted."""

    ridge: float = 0.01  # in units of the activations' variance
    hidden: int = 128  # of the mlp
    n_epochs: int = 30
    batch_size: int = 256
    lr: float = 3e-3
    weight_decay: float = 1e-3


@dataclass(frozen=True, eq=False)
class Targets:
    """What there is to know about programs; arrays are [program, variable], −1 where a variable is not assigned."""

    digits: np.ndarray
    root_line: np.ndarray  # counted from 1
    known_from: np.ndarray  # the position from which on the variable's line is complete
    line_1: np.ndarray  # [program]: the constant on line 1

    @property
    def assigned(self) -> np.ndarray:
        return self.digits >= 0


def find_targets(batch: Batch) -> Targets:
    """The final value of each variable of each program in a batch."""
    programs, _ = programs_of(batch)
    rows, lines = np.nonzero(programs.live)
    letters = programs.variables[rows, lines]
    filled = {}
    right = LINE_WIDTH * lines + LINE_PARTS.index("rhs")
    facts = {"digits": programs.value[rows, lines], "root_line": programs.root[rows, lines] + 1, "known_from": right}
    for name, values in facts.items():
        filled[name] = np.full((len(programs), N_LETTERS), -1)
        filled[name][rows, letters] = values
    return Targets(**filled, line_1=programs.value[:, 0].astype(np.int64))


def probe_positions(
    model: Transformer,
    fit: Batch,
    test: Batch,
    generator: torch.Generator,
    *,
    probes: Sequence[str] = ("linear",),
    layers: Sequence[int] | None = None,
    positions: Sequence[int] | None = None,
    plan: ProbePlan | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Every probe at every layer × position, with its controls: dims (condition, probe, layer, position).

    ``shuffled labels`` gives each program the values of another one that assigns the variable too; ``untrained model``
    is a fresh one of the same shape.

    >>> dataset = probe_positions(model, fit, test, torch.Generator().manual_seed(0))
    >>> dataset.accuracy.sel(condition="trained", probe="linear").max()
    """
    plan = plan or ProbePlan()
    n_layers, n_positions = model.config.n_layers, len(columns_of(fit))
    layers = range(n_layers + 1) if layers is None else layers
    positions = range(n_positions) if positions is None else positions
    _check(probes, layers, positions, n_layers, fit, test)
    goal, answer = find_targets(fit), find_targets(test)
    shuffled = shuffle_digits(goal.digits, generator)
    models = {"trained": model, "untrained model": Transformer(model.config, generator).eval()}
    shape = (len(CONDITIONS), len(probes), len(layers), len(positions))
    cells = {name: np.full(shape, np.nan) for name in [*MEASURES, *BOUNDS]}
    by_variable = np.full((*shape, N_LETTERS), np.nan)
    done, total = 0, len(models) * len(layers) * len(probes)
    for name, probed in models.items():
        labels = {name: goal.digits} | ({"shuffled labels": shuffled} if name == "trained" else {})
        for layer, x, x_test in read_streams(probed, fit, test, layers, positions):
            for kind, probe in enumerate(probes):
                predictions = _fit_and_predict(probe, x, list(labels.values()), x_test, plan, generator)
                for condition, predicted in zip(labels, predictions):
                    cell = (CONDITIONS.index(condition), kind, list(layers).index(layer))
                    for measure, values in _score(predicted, answer, positions).items():
                        (by_variable if measure == "by_variable" else cells[measure])[cell] = values
                done += 1
                if on_progress:
                    on_progress(done, total)
    return _label(cells, by_variable, probes, layers, positions, goal, answer, fit)


def _check(
    probes: Sequence[str], layers: Sequence[int], positions: Sequence[int], n_layers: int, fit: Batch, test: Batch
) -> None:
    n_positions = len(columns_of(fit))
    if fit.tokens.shape[1] != test.tokens.shape[1]:
        raise BindscopeError("probes: the programs to fit and to test on have different lengths; draw equal ones.")
    for probe in probes:
        if probe not in PROBES:
            raise BindscopeError(f"probe '{probe}': unknown; use {', '.join(PROBES)}.")
    for layer in layers:
        if not 0 <= layer <= n_layers:
            raise BindscopeError(
                f"layer {layer}: the model has layers 0 to {n_layers - 1}; {n_layers} is the residual stream that leaves the last."
            )
    for position in positions:
        if not 0 <= position < n_positions:
            raise BindscopeError(f"position {position}: the programs have positions 0 to {n_positions - 1}.")
    if not probes or not len(layers) or not len(positions):
        raise BindscopeError("probes: give at least one probe, one layer and one position.")


def shuffle_digits(digits: np.ndarray, generator: torch.Generator) -> np.ndarray:
    """Each label's digits [program, label] dealt out again among the programs that have it, −1 where one has not."""
    shuffled = digits.copy()
    for label in range(digits.shape[1]):
        rows = np.flatnonzero(digits[:, label] >= 0)
        shuffled[rows, label] = digits[rows[torch.randperm(len(rows), generator=generator).numpy()], label]
    return shuffled


def read_streams(
    model: Transformer, fit: Batch, test: Batch, layers: Sequence[int], positions: Sequence[int]
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """(layer, fit, test) streams in the order of layers, each [position, program, feature]: centred, of unit size, and a
    column of ones."""
    for layer, streams in enumerate(zip(*(_walk_layers(model, batch) for batch in (fit, test)))):
        if layer not in layers:
            continue
        columns = columns_of(fit)[list(positions)].tolist()
        x, x_test = (to_host(stream[:, columns]).float().transpose(0, 1).contiguous() for stream in streams)
        mean = x.mean(1, keepdim=True)  # [position, 1, d_model]
        size = (x - mean).square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-6)
        yield layer, _with_ones((x - mean) / size), _with_ones((x_test - mean) / size)
        if layer == max(layers):
            return


def _walk_layers(model: Transformer, batch: Batch) -> Iterator[Tensor]:
    """The residual stream [program, position, d_model] that enters each layer, then what leaves the last: all programs go up
    together, and only one layer's streams are held."""
    check_evaluating(model)
    n_rows = max(1, TOKENS_AT_ONCE // batch.tokens.shape[1])
    tokens = torch.from_numpy(batch.tokens).to(model.W_E.device)
    with torch.no_grad():
        ids = model.position_ids(tokens, None)
        view = model.view(ids, None)
        streams = [model.enter(rows, ids) for rows in tokens.split(n_rows)]
    yield torch.cat(streams)
    for block in model.layers:
        with torch.no_grad():
            streams = [block(x, view) for x in streams]
        yield torch.cat(streams)


def _with_ones(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)


def _fit_and_predict(
    probe: str, x: Tensor, digits: list[np.ndarray], x_test: Tensor, plan: ProbePlan, generator: torch.Generator
) -> Iterator[np.ndarray]:
    """For each kind of ``digits`` [program, letter] what probes fitted to them read off ``x_test``: [position, test, letter]."""
    if probe == "linear":
        yield from predict_linear(x, digits, x_test, plan.ridge)
        return
    hidden = plan.hidden if probe == "mlp" else None
    for each in digits:
        output = _train_network(x, torch.from_numpy(each), x_test, plan, generator, hidden)
        yield output.unflatten(-1, (N_LETTERS, N_DIGITS)).argmax(-1).numpy()


def predict_linear(x: Tensor, digits: Sequence[np.ndarray], x_test: Tensor, ridge: float) -> list[np.ndarray]:
    """What linear probes of ``x`` [position, program, feature] read off ``x_test``: [position, test, label] for each kind of
    ``digits`` [program, label] that they are fitted to. All kinds have −1, for nothing, in the same places.
    """
    weights = _solve_ridge(x, [torch.from_numpy(each) for each in digits], ridge)
    return [(x_test @ weight).unflatten(-1, (-1, N_DIGITS)).argmax(-1).numpy() for weight in weights]


def _solve_ridge(x: Tensor, labels: list[Tensor], ridge: float) -> list[Tensor]:
    """Least squares to one-hot digits with a ridge, for each label over the programs that have it.

    All ``labels`` [program, label] must agree on who has what; the weights are [position, feature, label·digit].
    """
    n_positions, _, n_features = x.shape
    n_labels = labels[0].shape[1]
    weights = x.new_zeros(len(labels), n_positions, n_features, n_labels, N_DIGITS)
    penalty = ridge * torch.eye(n_features)
    penalty[-1, -1] = 1e-6  # the bias is free
    for label in range(n_labels):
        rows = torch.nonzero(labels[0][:, label] >= 0)[:, 0]
        if len(rows) == 0:
            continue
        transposed = x[:, rows].transpose(1, 2)  # [position, feature, row]
        target = torch.cat([F.one_hot(each[rows, label].long(), N_DIGITS) for each in labels], dim=1).to(x.dtype)
        factor = torch.linalg.cholesky(transposed @ transposed.transpose(1, 2) / len(rows) + penalty)
        solved = torch.cholesky_solve(transposed @ target / len(rows), factor)  # [position, feature, kind·digit]
        weights[:, :, :, label] = solved.unflatten(2, (len(labels), N_DIGITS)).permute(2, 0, 1, 3)
    return list(weights.flatten(3))


def _train_network(
    x: Tensor, labels: Tensor, x_test: Tensor, plan: ProbePlan, generator: torch.Generator, hidden: int | None
) -> Tensor:
    """Outputs [position, test, letter·digit] of softmax probes trained by AdamW, one for each position at once."""
    n_positions, n_programs, n_features = x.shape
    widths = [n_features, *([] if hidden is None else [hidden]), N_LETTERS * N_DIGITS]
    weights = [
        (torch.randn(n_positions, a, b, generator=generator) * (0.1 if hidden is None else a**-0.5)).requires_grad_()
        for a, b in pairwise(widths)
    ]

    def outputs(inputs: Tensor) -> Tensor:
        value = inputs @ weights[0]  # [position, program, …]
        return value if hidden is None else F.gelu(value) @ weights[1]

    optimizer = torch.optim.AdamW(weights, lr=plan.lr, weight_decay=plan.weight_decay)
    n_steps = plan.n_epochs * -(-n_programs // plan.batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
    for step in range(n_steps):
        if step * plan.batch_size % n_programs < plan.batch_size:
            order = torch.randperm(n_programs, generator=generator)
        start = step * plan.batch_size % n_programs
        rows = order[start : start + plan.batch_size]
        logits = outputs(x[:, rows]).unflatten(-1, (N_LETTERS, N_DIGITS))  # [position, row, letter, digit]
        target = labels[rows].expand(n_positions, -1, -1)
        loss = F.cross_entropy(logits.flatten(0, 2), target.flatten(), ignore_index=-1) * n_positions
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return outputs(x_test)


def _score(predicted: np.ndarray, answer: Targets, positions: Sequence[int]) -> dict[str, np.ndarray]:
    """Every measure [position] of predictions [position, test, letter]."""
    counts = answer.assigned  # [test, letter]
    right = (predicted == answer.digits) & counts
    late = counts & (answer.root_line >= 3)
    seen = counts & (answer.known_from <= np.array(positions)[:, None, None])  # [position, test, letter]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            **_with_interval("accuracy", right, counts),
            **_with_interval("late_accuracy", right & late, late),
            "seen_accuracy": (right & seen).sum((1, 2)) / seen.sum((1, 2)),
            "state": (right == counts).all(2).mean(1),
            "by_variable": right.sum(1) / counts.sum(0),
        }


def _with_interval(name: str, hits: np.ndarray, counts: np.ndarray) -> dict[str, np.ndarray]:
    """The fraction [position] of ``hits`` [position, test, letter] among ``counts`` [test, letter]; normal over programs."""
    asked = counts.any(1)
    if not asked.any():
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"), np.full(len(hits), np.nan))
    by_program = hits[:, asked].sum(2) / counts[asked].sum(1)  # [position, program]
    fraction = hits.sum((1, 2)) / counts.sum()
    margin = 1.96 * by_program.std(1) / int(asked.sum()) ** 0.5
    return {
        name: fraction,
        f"{name}_low": np.clip(fraction - margin, 0, 1),
        f"{name}_high": np.clip(fraction + margin, 0, 1),
    }


def _label(
    cells: dict[str, np.ndarray],
    by_variable: np.ndarray,
    probes: Sequence[str],
    layers: Sequence[int],
    positions: Sequence[int],
    goal: Targets,
    answer: Targets,
    fit: Batch,
) -> xr.Dataset:
    dims = ("condition", "probe", "layer", "position")
    n_test = len(answer.digits)
    cells["state_low"], cells["state_high"] = wilson_interval(np.round(cells["state"] * n_test), n_test)
    n_lines = (len(columns_of(fit)) - QUERY_WIDTH) // LINE_WIDTH
    coords = {
        "condition": list(CONDITIONS),
        "probe": list(probes),
        "layer": list(layers),
        "position": list(positions),
        "position_name": ("position", [str(name_at(position, n_lines)) for position in positions]),
        "variable": list(LETTERS),
    }
    variables = {name: (dims, values) for name, values in cells.items()}
    dataset = xr.Dataset({**variables, "accuracy_by_variable": ((*dims, "variable"), by_variable)}, coords)
    for name, fraction in _base_rates(goal, answer).items():
        dataset[name] = fraction
    for array in dataset.data_vars.values():
        array.attrs["units"] = "fraction"
    dataset.attrs = {
        "n_fit": len(goal.digits),
        "n_test": n_test,
        "n_variables_tested": int(answer.assigned.sum()),
        "exclusions": "variables that a program does not assign",
        "interval": "95 %: normal over programs for accuracy, Wilson for state",
    }
    return dataset


def _base_rates(goal: Targets, answer: Targets) -> dict[str, float]:
    """What one scores without looking inside: each variable's commonest digit, or line 1's constant for all."""
    counts = np.stack([(goal.digits == digit).sum(0) for digit in range(N_DIGITS)])  # [digit, letter]
    guesses = {
        "majority": np.broadcast_to(counts.argmax(0), answer.digits.shape),
        "line_1": np.broadcast_to(answer.line_1[:, None], answer.digits.shape),
    }
    late = answer.assigned & (answer.root_line >= 3)
    rates = {}
    for name, guess in guesses.items():
        right = (guess == answer.digits) & answer.assigned
        rates[f"{name}_accuracy"] = float(right.sum() / answer.assigned.sum())
        rates[f"{name}_late_accuracy"] = float((right & late).sum() / max(late.sum(), 1))
        rates[f"{name}_state"] = float((right == answer.assigned).all(1).mean())
    return rates
