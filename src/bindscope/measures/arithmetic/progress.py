"""The seven progress measures of a model of modular addition: which part of the circuit is there, each from 0 to 1.

Three are read off the weights and have no error:

- ``ov2_mlp2_accuracy``       pairs that layer 2's OV, the MLP and the unembedding add correctly by themselves;
- ``qk1_num_to_prev_var``     positions 1 to 11 that prefer, by position alone, the position before them;
- ``qk2_ov1_var_identity``    variables whose copy in layer 1 scores highest with itself in layer 2.

Four are fractions over sequences drawn equally from all evaluation splits, restricted positions included:

- ``attn_l1_equal_to_operands``  ``=`` attends most to both operands in layer 1 (sums with at most one variable, as the
  authors have it; over all splits it is ``attn_l1_equal_to_operands_all``);
- ``attn_l1_num_to_prev``        assigned numbers attend most to the token before them in layer 1;
- ``attn_l2_equal_to_values``    ``=`` attends most to both operands' numbers in layer 2 (sums with at most one variable);
- ``probe_l1_var_from_num``      a linear probe names the variable that an assigned number belongs to, after layer 1.

>>> probes = draw_probes(task, np.random.default_rng(0), n=200)
>>> measure_progress(SumForms.of(model, task), task, probes)["qk2_ov1_var_identity"]
(1.0, 12)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.addition import answers_alone, right_answers
from bindscope.measures.stats.fractions import CONFIDENCE, fraction_variables
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_POSITIONS, N_PREFIX, OPERAND_POSITIONS

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.tasks.assign_add import AssignAddTask

WEIGHT_MEASURES = ("ov2_mlp2_accuracy", "qk1_num_to_prev_var", "qk2_ov1_var_identity")
SAMPLED_MEASURES = (
    "attn_l1_equal_to_operands",
    "attn_l1_num_to_prev",
    "attn_l2_equal_to_values",
    "probe_l1_var_from_num",
)
MEASURES = (*WEIGHT_MEASURES, *SAMPLED_MEASURES)
ALL_SPLITS = "attn_l1_equal_to_operands_all"  # beside the authors' reading, ours over every split
CONTROL = "probe_l1_shuffled"  # the same probe fitted to variables dealt out again
BESIDE = (ALL_SPLITS, CONTROL)  # shown beside the seven
MOST_VARIABLES = 1  # of the sums in which = is watched
RIDGE = 1e-3  # on a stream of unit size, as the probes of study 1 have it
ROWS_AT_ONCE = 1000  # bounds memory, never changes a number
SEEN = np.tril(np.ones((N_POSITIONS, N_POSITIONS), dtype=bool))  # [query, key]

Reading = tuple[float, int]  # a fraction, and of how many


@dataclass(frozen=True, eq=False)
class ProbeSequences:
    """Sequences to measure on, and others to fit the linear probe on; drawn once for all checkpoints."""

    tokens: np.ndarray  # [sequence, position]
    values: np.ndarray  # [sequence, 2]: the columns of the operands' numbers, ascending
    n_variables: np.ndarray  # [sequence]: how many operands are variables
    fit_tokens: np.ndarray  # [sequence, position]
    shuffle: np.ndarray  # [assigned number of fit_tokens]: another order of them, for the control
    modulus: int

    @property
    def few_variables(self) -> np.ndarray:
        return self.n_variables <= MOST_VARIABLES


def draw_probes(task: AssignAddTask, rng: np.random.Generator, n: int) -> ProbeSequences:
    """``n`` sequences from each of the nine splits to measure on, and as many others to fit the probe on."""
    if n < 1:
        raise BindscopeError(f"progress measures: at least 1 sequence a split is needed, got {n}.")
    splits = task.sample_evaluation(rng, n)
    tokens = np.concatenate([batch.tokens for batch in splits.values()])
    fit = np.concatenate([batch.tokens for batch in task.sample_evaluation(rng, n).values()])
    n_fitted = int(_assigned_numbers(fit, task.modulus).sum())
    return ProbeSequences(
        tokens=tokens,
        values=np.sort(task.sequences.value_positions(tokens), axis=1),
        n_variables=np.concatenate([batch.labels["n_variables"][:, 0] for batch in splits.values()]),
        fit_tokens=fit,
        shuffle=rng.permutation(n_fitted),
        modulus=task.modulus,
    )


def measure_progress(forms: SumForms, task: AssignAddTask, probes: ProbeSequences) -> dict[str, Reading]:
    """All seven measures and the probe's control, each with the number of things it is a fraction of.

    Of the assigned numbers in one sequence that number is 1: they are not independent of each other.
    """
    return measure_weights(forms, task) | measure_sequences(forms, probes)


def measure_weights(forms: SumForms, task: AssignAddTask) -> dict[str, Reading]:
    """The three measures that need no sequence."""
    n_variables = len(forms.variables)
    matrix = variable_identity(forms)
    previous = prefers_previous(forms.positions @ forms.qk1 @ forms.positions.T)
    return {
        "ov2_mlp2_accuracy": (float((answers_alone(forms) == right_answers(task)).mean()), task.modulus**2),
        "qk1_num_to_prev_var": (float(previous.mean()), len(previous)),
        "qk2_ov1_var_identity": (float((matrix.argmax(1) == np.arange(n_variables)).mean()), n_variables),
    }


def variable_identity(forms: SumForms) -> np.ndarray:
    """(v OV1) QK2 (v OV1)ᵀ over variables: what a copy of one in the query scores with a copy of another in the key."""
    copies = forms.variables @ forms.ov1
    scores: np.ndarray = copies @ forms.qk2 @ copies.T
    return scores


def allowed_positions() -> np.ndarray:
    """[query, key] bool: where the variable of a number at position 1 to 11 can stand at all.

    Before it, and not two before it: that token is a PAD or another number. Positions 1 and 2 have one candidate only.
    """
    query, key = np.indices((N_POSITIONS, N_POSITIONS))
    allowed: np.ndarray = (query >= 1) & (query < N_PREFIX) & (key < query) & (key != query - 2)
    return allowed


def prefers_previous(scores: np.ndarray) -> np.ndarray:
    """[position 1 to 11] bool: whether, of the allowed positions, the one before scores highest; ``scores`` [query, key]."""
    best = np.where(allowed_positions(), scores, -np.inf).argmax(1)
    rows = np.arange(1, N_PREFIX)
    preferred: np.ndarray = best[rows] == rows - 1
    return preferred


def measure_sequences(forms: SumForms, probes: ProbeSequences) -> dict[str, Reading]:
    """The four measures over sequences, and the control of the probe."""
    tested = [_read_sequences(forms, rows) for rows in _split(probes.tokens)]
    first, last, stream = (np.concatenate(parts) for parts in zip(*tested, strict=True))
    fitted = np.concatenate([_read_sequences(forms, rows)[2] for rows in _split(probes.fit_tokens)])
    is_number, n = _assigned_numbers(probes.tokens, probes.modulus), len(probes.tokens)
    looks_back = first[:, :N_PREFIX].argmax(-1) == np.arange(N_PREFIX) - 1  # [sequence, position]
    few = probes.few_variables
    at_operands = (_top_two(first[:, ANSWER_POSITION]) == OPERAND_POSITIONS).all(1)
    at_values = (_top_two(last[few]) == probes.values[few]).all(1)
    named, control = _probe_variables(fitted, stream, probes)
    return {
        "attn_l1_equal_to_operands": (float(at_operands[few].mean()), int(few.sum())),
        ALL_SPLITS: (float(at_operands.mean()), n),
        "attn_l1_num_to_prev": (float(looks_back[is_number].mean()), n),
        "attn_l2_equal_to_values": (float(at_values.mean()), int(few.sum())),
        "probe_l1_var_from_num": (named, n),
        CONTROL: (control, n),
    }


def _read_sequences(forms: SumForms, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of layer 1 [sequence, query, key] and of ``=`` in layer 2 [sequence, key], and the residual stream between them.

    A token at a position has one query and one value in layer 1 whatever stands around it: these are tables.
    """
    at = np.arange(N_POSITIONS)
    table = forms.tokens[:, None] + forms.positions  # [token, position, d_model]
    queries, values = table @ forms.qk1, table @ forms.ov1
    x = table[tokens, at]  # [sequence, position, d_model]
    scores = np.where(SEEN, queries[tokens, at] @ x.transpose(0, 2, 1), -np.inf)
    pattern = np.exp(scores - scores.max(-1, keepdims=True))
    pattern /= pattern.sum(-1, keepdims=True)
    stream = x + pattern @ values[tokens, at]
    asked = stream[:, ANSWER_POSITION] @ forms.qk2  # [sequence, d_model]
    return scores, (stream @ asked[:, :, None])[..., 0], stream[:, :N_PREFIX]


def _split(tokens: np.ndarray) -> list[np.ndarray]:
    return [tokens[start : start + ROWS_AT_ONCE] for start in range(0, len(tokens), ROWS_AT_ONCE)]


def _top_two(scores: np.ndarray) -> np.ndarray:
    """The columns of the two highest scores, ascending: [row, column] to [row, 2]."""
    return np.sort(np.argpartition(scores, -2, axis=1)[:, -2:], axis=1)


def _assigned_numbers(tokens: np.ndarray, modulus: int) -> np.ndarray:
    """[sequence, prefix position] bool: where the number of an assignment stands."""
    is_number: np.ndarray = tokens[:, :N_PREFIX] < modulus
    return is_number


def _probe_variables(fitted: np.ndarray, tested: np.ndarray, probes: ProbeSequences) -> tuple[float, float]:
    """How often a ridge regression names the right variable, and one fitted to variables in another order does."""
    x, labels = _number_tokens(fitted, probes.fit_tokens, probes.modulus)
    x_test, truth = _number_tokens(tested, probes.tokens, probes.modulus)
    mean = x.mean(0)
    size = max(float(np.sqrt(np.square(x - mean).mean())), 1e-12)
    x, x_test = _with_ones((x - mean) / size), _with_ones((x_test - mean) / size)
    names = np.unique(labels)
    penalty = np.diag([RIDGE] * (x.shape[1] - 1) + [1e-9])  # the bias is free
    targets = [labels[:, None] == names, labels[probes.shuffle][:, None] == names]
    joined = np.concatenate(targets, axis=1).astype(float)  # [number, kind · name]
    weights = np.linalg.solve(x.T @ x / len(x) + penalty, x.T @ joined / len(x))
    outputs = (x_test @ weights).reshape(len(x_test), len(targets), len(names))
    right = names[outputs.argmax(-1)] == truth[:, None]  # [number, kind]
    return float(right[:, 0].mean()), float(right[:, 1].mean())


def _number_tokens(stream: np.ndarray, tokens: np.ndarray, modulus: int) -> tuple[np.ndarray, np.ndarray]:
    """The residual stream at every assigned number [number, d_model], and the token of its variable, which stands before it."""
    row, position = np.nonzero(_assigned_numbers(tokens, modulus))
    return stream[row, position], tokens[row, position - 1]


def _with_ones(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def label_progress(steps: Sequence[int], fractions: dict[str, np.ndarray], counts: dict[str, int]) -> xr.Dataset:
    """Fractions [step] by name as a dataset, with Wilson intervals where they are over sequences."""
    variables: dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]] = {}
    for name, values in fractions.items():
        if name in WEIGHT_MEASURES:
            variables[name] = (("step",), values, {"units": "fraction"})
        else:
            variables |= fraction_variables(
                name, ["step"], np.clip(values * counts[name], 0, counts[name]), counts[name]
            )
    dataset = xr.Dataset(variables, {"step": list(steps)})
    for name, n in counts.items():
        dataset[name].attrs["n"] = n
    dataset.attrs = {
        "title": "progress measures",
        "confidence": CONFIDENCE,
        "interval": "95 % Wilson over sequences; those read off the weights have none",
    }
    return dataset
