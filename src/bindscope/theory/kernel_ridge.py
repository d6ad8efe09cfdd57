"""Kernel ridge regression with the transformer's kernel, tested on symbols that training never shows.

The kernel of two sequences depends only on their templates and on which wildcards got the same symbol, so the Gram matrix
of n sequences is looked up in a table of those *structures*. A test sequence shares no symbol with training: its kernel with
a training sequence is an entry of N, so the error over all unseen symbols is exact, with nothing to sample.

Were no symbol used twice, sequences of one template would only differ by a nugget D = K(x, x) − N_tt, and regression would
see n_t copies of each template's mean: its answers are N (N + diag((D + ridge)/n_t))⁻¹ y, right once n·λ_min(N) ≫ D.

>>> ridge_generalises(TemplateTask(name="aba-abb"), n_values=[16, 256], seeds=[0]).test_error.values
array([[1.0…], [0.5…]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.templates import TemplateTask
from bindscope.theory.kernel import Estimate, KernelSettings, TemplateKernel, encode_templates, template_kernel
from bindscope.theory.kernel_attention import sequence_moments

if TYPE_CHECKING:
    import xarray as xr

MOST_STRINGS = 4096
MOST_WILDCARDS = 10
ROWS_AT_ONCE = 256
RIDGE = 1e-4
MOST_NEEDED = 1e15  # sequences beyond which no number of them is said to halve the error


def ridge_generalises(
    task: TemplateTask,
    n_values: Sequence[int],
    seeds: Sequence[int] = (0,),
    settings: KernelSettings | None = None,
    ridge: float = RIDGE,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Train on the task's n sequences over n symbols, for each n and seed; mean square errors on fresh symbols.

    ``test_error`` (n, seed); ``means_error`` (n, seed) of the regression that sees template means only;
    ``shuffled_error`` (n, seed) of one whose labels were dealt out again among its sequences; ``answer`` (n, seed, template).
    Labels have to be real.
    """
    import xarray as xr

    settings = settings or KernelSettings()
    _check(task, n_values, ridge)
    kernel = template_kernel(task.parsed_templates, settings)
    tasks = {(n, seed): replace(task, alphabet=n, seed=seed) for n in n_values for seed in seeds}
    samples = {key: SequenceSample.of(each) for key, each in tasks.items()}
    structures = Structures.of(kernel, task, list(samples.values()))
    labels = np.array(task.template_set.labels, dtype=float)
    answers = np.empty((len(n_values), len(seeds), len(labels)))
    by_means, shuffled = np.empty_like(answers), np.empty_like(answers)
    for done, ((n, seed), sample) in enumerate(samples.items()):
        cell = list(n_values).index(n), list(seeds).index(seed)
        counts = np.bincount(sample.templates, minlength=len(labels))
        targets = labels[sample.templates]
        both = np.stack([targets, np.random.default_rng([seed, n]).permutation(targets)], axis=1)
        fitted = fit_answers(structures.gram(sample), kernel.matrix.value, sample.templates, both, ridge)
        answers[cell], shuffled[cell] = fitted.T
        by_means[cell] = answers_from_means(kernel, labels, counts, ridge)
        if on_progress is not None:
            on_progress(done + 1, len(samples))
    arrays = {
        "test_error": (("n", "seed"), ((answers - labels) ** 2).mean(2)),
        "means_error": (("n", "seed"), ((by_means - labels) ** 2).mean(2)),
        "shuffled_error": (("n", "seed"), ((shuffled - labels) ** 2).mean(2)),
        "answer": (("n", "seed", "template"), answers),
        "label": ("template", labels),
    }
    coordinates = {"n": list(n_values), "seed": list(seeds), "template": list(kernel.templates)}
    attributes = {"task": task.name, "ridge": ridge, "beta": settings.beta, "gamma": settings.gamma}
    return xr.Dataset(arrays, coords=coordinates, attrs={**attributes, "activation": settings.phi.name})  # type: ignore[arg-type]


def fit_answers(
    gram: np.ndarray, matrix: np.ndarray, templates: np.ndarray, targets: np.ndarray, ridge: float
) -> np.ndarray:
    """What ridge regression on sequences with these templates and targets [sequence, …] answers for fresh symbols."""
    weights = np.linalg.solve(gram + ridge * np.eye(len(gram)), targets)
    return matrix[:, templates] @ weights


def answers_from_means(kernel: TemplateKernel, labels: np.ndarray, counts: np.ndarray, ridge: float) -> np.ndarray:
    """… and what it would answer if no two sequences had a symbol in common, from how many there are of each template."""
    matrix, nugget = kernel.matrix.value, kernel.with_itself.value - np.diag(kernel.matrix.value)
    return _answer_means(matrix, nugget, labels, counts, ridge)


def half_loss_size(kernel: TemplateKernel, labels: Sequence[float], ridge: float = RIDGE) -> Estimate:
    """How many sequences (templates equally often) template means need to halve the mean square error, with an interval.

    Infinite where no number of them does, and 1 where the first sequence is enough.
    """
    values = np.array(labels, dtype=float)

    def statistic(same: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        expect = kernel.settings.phi.expect
        matrix = expect(same[:, None], same[None, :], fresh)
        return np.log(_find_half(matrix, expect(same, same, same) - np.diag(matrix), values, ridge))

    found = kernel.estimate(statistic)
    size, low, high = (_unbounded(np.exp(logarithm)) for logarithm in (found.value, found.low, found.high))
    return Estimate(size, size * found.standard_error if np.isfinite(size) else np.array(np.inf), low, high)


def _unbounded(size: np.ndarray) -> np.ndarray:
    return np.where(size < MOST_NEEDED * (1 - 1e-6), size, np.inf)


def _find_half(matrix: np.ndarray, nugget: np.ndarray, labels: np.ndarray, ridge: float) -> float:
    def error(log_n: float) -> float:
        counts = np.full(len(labels), np.exp(log_n) / len(labels))
        return float(((_answer_means(matrix, nugget, labels, counts, ridge) - labels) ** 2).mean())

    low, high, goal = 0.0, np.log(MOST_NEEDED), float((labels**2).mean()) / 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > goal else (low, middle)
    return float(np.exp(high))


def _answer_means(
    matrix: np.ndarray, nugget: np.ndarray, labels: np.ndarray, counts: np.ndarray, ridge: float
) -> np.ndarray:
    seen = counts > 0
    noise = np.diag((nugget[seen] + ridge) / counts[seen])
    return matrix[:, seen] @ np.linalg.solve(matrix[np.ix_(seen, seen)] + noise, labels[seen])


@dataclass(frozen=True, eq=False)
class SequenceSample:
    """Sequences by their template and the symbol of each wildcard; −1 − row where the template has fewer."""

    templates: np.ndarray  # [sequence]
    symbols: np.ndarray  # [sequence, wildcard]

    @classmethod
    def of(cls, task: TemplateTask) -> SequenceSample:
        batch = task.training_set()
        templates = batch.labels["template"][:, 0]
        positions = np.full((len(task.parsed_templates), task.n_wildcards), -1)
        for row, template in enumerate(task.parsed_templates):
            positions[row, : len(template.wildcards)] = [template.positions(name)[0] for name in template.wildcards]
        chosen = positions[templates]
        symbols = np.take_along_axis(batch.tokens, np.maximum(chosen, 0), axis=1)
        absent = -1 - np.arange(len(templates) * task.n_wildcards).reshape(len(templates), -1)
        return cls(templates, np.where(chosen >= 0, symbols, absent))


@dataclass(frozen=True, eq=False)
class Structures:
    """A table of the kernel by structure: two templates, and for each wildcard of the second which of the first it meets."""

    kernel: TemplateKernel
    n_wildcards: int
    keys: np.ndarray  # [structure], sorted
    values: np.ndarray  # K_trans, [structure]

    @classmethod
    def of(cls, kernel: TemplateKernel, task: TemplateTask, samples: Sequence[SequenceSample]) -> Structures:
        """The table of every structure that occurs in the samples."""
        n_templates, n_wildcards = len(kernel.templates), task.n_wildcards
        found = [np.unique(part) for sample in samples for part in _pair_keys(sample, n_templates, n_wildcards)]
        keys = np.unique(np.concatenate(found))
        return cls(kernel, n_wildcards, keys, _fill(kernel, task, keys))

    def gram(self, sample: SequenceSample) -> np.ndarray:
        """K_trans between all sequences of a sample."""
        parts = _pair_keys(sample, len(self.kernel.templates), self.n_wildcards)
        rows = [self.values[np.searchsorted(self.keys, part)] for part in parts]
        gram = np.concatenate(rows)
        return (gram + gram.T) / 2


def _pair_keys(sample: SequenceSample, n_templates: int, n_wildcards: int) -> list[np.ndarray]:
    """[sequence of the part, sequence] for parts of the rows: structures as numbers, template · template · matching."""
    powers = (n_wildcards + 1) ** np.arange(n_wildcards)
    parts = []
    for start in range(0, len(sample.templates), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        keys = sample.templates[rows, None] * n_templates + sample.templates[None, :]
        keys *= (n_wildcards + 1) ** n_wildcards
        for ours in range(n_wildcards):
            for theirs in range(n_wildcards):
                meets = sample.symbols[rows, ours][:, None] == sample.symbols[None, :, theirs]
                keys += meets * ((ours + 1) * powers[theirs])
        parts.append(keys)
    return parts


def _fill(kernel: TemplateKernel, task: TemplateTask, keys: np.ndarray) -> np.ndarray:
    """K_trans of each structure: N where nothing meets, K(x, x) where the sequences are the same, else by integration."""
    settings, n = kernel.settings, task.n_wildcards
    base = n + 1
    pairs, matchings = np.divmod(keys, base**n)
    first, second = np.divmod(pairs, len(kernel.templates))
    meets = matchings[:, None] // base ** np.arange(n) % base  # [structure, wildcard of the second]: 0 for none
    same, fresh = kernel.moments.same.mean(0), kernel.moments.fresh.mean(0)
    cross = fresh[first, second].copy()
    n_own = np.array([len(template.wildcards) for template in task.parsed_templates])
    identity = np.where(np.arange(n) < n_own[first][:, None], np.arange(1, n + 1), 0)
    is_same = (first == second) & (meets == identity).all(1)
    cross[is_same] = same[first[is_same]]
    shared = np.flatnonzero((matchings > 0) & ~is_same)
    if len(shared):
        cross[shared] = _integrate(kernel, task, first[shared], second[shared], meets[shared])
    return settings.phi.expect(same[first], same[second], cross)


def _integrate(
    kernel: TemplateKernel, task: TemplateTask, first: np.ndarray, second: np.ndarray, meets: np.ndarray
) -> np.ndarray:
    """K_attn of structures: wildcards of the first sequence are symbols 0 … n − 1, new ones of the second n … 2n − 1."""
    settings, n = kernel.settings, task.n_wildcards
    codes, _ = encode_templates(task.parsed_templates, settings.cls)
    spread = np.where(codes >= n, codes + n, codes)  # regular tokens come after both sequences' wildcards
    symbols = np.where(meets > 0, meets - 1, n + np.arange(n))  # [structure, wildcard of the second]
    regular = np.broadcast_to(np.arange(2 * n, codes.max() + n + 1), (len(meets), max(codes.max() + 1 - n, 0)))
    sequences = np.take_along_axis(np.concatenate([symbols, regular], axis=1), codes[second], axis=1)
    distinct, inverse = np.unique(sequences, axis=0, return_inverse=True)
    rng = np.random.default_rng(settings.seed)
    moments = sequence_moments(spread, distinct, settings.beta, settings.gamma, settings.sampling, rng)
    return moments.fresh.mean(0)[first, inverse.reshape(-1)]


def _check(task: TemplateTask, n_values: Sequence[int], ridge: float) -> None:
    if task.target_kind != "real":
        raise BindscopeError(f"task: the labels of '{task.name}' are symbols; ridge regression needs real labels.")
    if not n_values or not all(task.n_wildcards <= n <= MOST_STRINGS for n in n_values):
        raise BindscopeError(f"n: give numbers of sequences between {task.n_wildcards} and {MOST_STRINGS}.")
    if task.n_wildcards > MOST_WILDCARDS:
        raise BindscopeError(f"task: templates may have at most {MOST_WILDCARDS} wildcards, got {task.n_wildcards}.")
    if not 0 < ridge < np.inf:
        raise BindscopeError(f"ridge: must be a positive number, got {ridge}.")
