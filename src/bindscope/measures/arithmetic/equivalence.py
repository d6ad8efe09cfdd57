"""Does the last MLP get the same vector whatever form a sum has: the sum of its two numbers' OV images?

Two comparisons, both cosines at `=`:

- *sum*: what attention of layer 2 adds there, against OV2 e_a + OV2 e_b. Matched with the sequence's own numbers, with
  the second number of another sequence (half of the sum is then still right), or with both of another.
- *form*: the residual stream before the MLP of a sum with variables, against that of the same numbers written out behind the same
  assignments. Matched, with another sequence's numbers behind the same assignments, or with another sequence.

>>> cosines = compare_sums(model, task, batch, rng)
>>> cosines["matched"].mean(), cosines["one other"].mean()
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.reading import read_sums
from bindscope.measures.evaluation import read_answers
from bindscope.measures.stats.fractions import mean_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, OPERAND_POSITIONS
from bindscope.tasks.task import Batch

SUM_PAIRINGS = ("matched", "one other", "both other")
FORM_PAIRINGS = ("matched", "other numbers", "other sequence")
ADDED, STREAM = f"L1.attn_out@{ANSWER_POSITION}", f"L1.resid_mid@{ANSWER_POSITION}"
VECTORS = ("attention", "stream")
EDGES = np.linspace(-1, 1, 51)  # of histograms of cosines


def compare_sums(
    model: Transformer, task: AssignAddTask, batch: Batch, rng: np.random.Generator
) -> dict[str, dict[str, np.ndarray]]:
    """By vector (what ``attention`` adds, or the whole ``stream`` before the MLP) and pairing: cosines [batch]."""
    images = _images(model, task)
    read = read_sums(model, batch.tokens, (ADDED, STREAM))
    vectors = dict(zip(VECTORS, (vector[:, 0].astype(float) for vector in read)))  # [batch, d_model]
    n1, n2 = batch.labels["n1"][:, 0], batch.labels["n2"][:, 0]
    other = exchange_rows(rng, len(n1))
    expected = {"matched": images[n1] + images[n2], "one other": images[n1] + images[n2[other]]}
    expected["both other"] = expected["matched"][other]
    return {
        name: {pairing: cosine(vector, image) for pairing, image in expected.items()}
        for name, vector in vectors.items()
    }


def compare_forms(
    model: Transformer, task: AssignAddTask, batch: Batch, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """By pairing: cosines [batch] of the residual stream before the MLP, sums with variables against sums of numbers."""
    numbers = np.concatenate([batch.labels["n1"], batch.labels["n2"]], axis=1)  # [batch, 2]
    other = exchange_rows(rng, len(numbers))
    asked, plain, other_numbers = (
        read_sums(model, tokens, (STREAM,))[0][:, 0].astype(float)
        for tokens in (
            batch.tokens,
            write_out_numbers(batch.tokens, numbers),
            write_out_numbers(batch.tokens, numbers[other]),
        )
    )
    pairs = dict(zip(FORM_PAIRINGS, (plain, other_numbers, plain[other])))
    return {pairing: cosine(asked, against) for pairing, against in pairs.items()}


def write_out_numbers(tokens: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Sequences [batch, 16] whose operands are these numbers [batch, 2]; the assignments stay."""
    written = tokens.copy()
    written[:, OPERAND_POSITIONS] = numbers
    return written


def exchange_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    """For each of ``n`` sequences another one: a random circle through all of them."""
    order = rng.permutation(n)
    other = np.empty(n, dtype=np.int64)
    other[order] = np.roll(order, 1)
    return other


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of rows [batch, d_model]; a vector without length is at a right angle to all."""
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return (a * b).sum(1) / np.where(lengths > 0, lengths, 1)


def _images(model: Transformer, task: AssignAddTask) -> np.ndarray:
    """What layer 2 takes from each number's embedding [number, d_model]."""
    forms = SumForms.of(model, task)
    return forms.numbers @ forms.ov2


def compare_vectors(
    model: Transformer, task: AssignAddTask, batches: Mapping[int, Batch], rng: np.random.Generator
) -> xr.Dataset:
    """Both comparisons of one model, for sums with none, one and two variables."""
    sums = {count: compare_sums(model, task, batch, rng) for count, batch in batches.items()}
    forms = {count: compare_forms(model, task, batch, rng) for count, batch in batches.items() if count}
    sum_cosines = np.array([[[found[v][p] for p in SUM_PAIRINGS] for found in sums.values()] for v in VECTORS])
    form_cosines = np.array([[found[p] for p in FORM_PAIRINGS] for found in forms.values()])
    right = [(read_answers(model, batch).argmax(1) == batch.targets[:, 0]).mean() for batch in batches.values()]
    variables = {
        **mean_variables("sum_cosine", ("vector", "n_variables", "sum_pairing"), sum_cosines, rng),
        **mean_variables("form_cosine", ("form_variables", "form_pairing"), form_cosines, rng),
        "sum_count": (("n_variables", "sum_pairing", "bin"), _histograms(sum_cosines[VECTORS.index("attention")])),
        "form_count": (("form_variables", "form_pairing", "bin"), _histograms(form_cosines)),
        "accuracy": ("n_variables", np.asarray(right, np.float32)),
    }
    coordinates = {
        "vector": list(VECTORS),
        "n_variables": list(sums),
        "form_variables": list(forms),
        "sum_pairing": list(SUM_PAIRINGS),
        "form_pairing": list(FORM_PAIRINGS),
        "bin": (EDGES[1:] + EDGES[:-1]) / 2,
    }
    return xr.Dataset(variables, coordinates)


def _histograms(cosines: np.ndarray) -> np.ndarray:
    """Counts in ``EDGES`` along the last axis."""
    rows = cosines.reshape(-1, cosines.shape[-1])
    counts = [np.histogram(np.clip(row, -1, 1), EDGES)[0] for row in rows]
    return np.array(counts, np.int16).reshape(*cosines.shape[:-1], -1)
