"""Addition alone: the last layer's OV and MLP on bare embeddings, and where along the residual stream the answer can be read.

The circuit alone takes W_U · MLP2(OV2 e_a + OV2 e_b) and nothing else, no residual, no other token, no position, and is
asked for all p² pairs. Probes are linear maps fitted to the answer on the residual stream at `=` before and after the last MLP.
A pair and its swap are fitted on or tested on together, so a table of pairs cannot pass.

>>> answers_alone(SumForms.of(model, task))[3, 4]
7
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.forms import SumForms, refuse_other_shapes
from bindscope.measures.arithmetic.reading import read_sums
from bindscope.measures.stats.fractions import count_variable, fraction_variables
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION

PROBED = ("before the MLP", "after the MLP")
SITES = (f"L1.resid_mid@{ANSWER_POSITION}", f"L1.resid_post@{ANSWER_POSITION}")
TEST_FRACTION = 0.3  # of unordered pairs
RIDGE = 0.1  # in units of the residual stream's variance: a class has few rows
SPLITS = ("0tr", "0add", "1tr", "1add", "2tr", "2add")  # every pair, every number of variables, allowed positions


def answers_alone(forms: SumForms, with_mlp: bool = True) -> np.ndarray:
    """What the circuit alone answers to every pair [n1, n2]; without the MLP, what attention's output says directly."""
    images = forms.numbers @ forms.ov2  # [number, d_model]
    sums = images[:, None] + images[None]
    return ((forms.mlp(sums) if with_mlp else sums) @ forms.unembed).argmax(-1)


def right_answers(task: AssignAddTask) -> np.ndarray:
    """The true answer to every pair [n1, n2]."""
    numbers = np.arange(task.modulus)
    return task.sequences.combine(numbers[:, None], numbers[None])


def pair_groups(task: AssignAddTask) -> dict[str, np.ndarray]:
    """Which pairs [n1, n2] training shows, and of the others whether it shows their swap."""
    trained = task.pairs.is_trained
    return {
        "all": np.ones_like(trained),
        "trained": trained,
        "held out": ~trained,
        "swap seen": ~trained & trained.T,
        "both held out": ~trained & ~trained.T,
    }


@dataclass(frozen=True, eq=False)
class ProbeSums:
    """Sequences with their answers, divided so that no pair is on both sides, in either order."""

    tokens: np.ndarray  # [batch, 16]
    answers: np.ndarray  # [batch]
    tested: np.ndarray  # [batch] bool

    @classmethod
    def draw(cls, task: AssignAddTask, rng: np.random.Generator, n: int) -> ProbeSums:
        """About ``n`` sequences of trained and held-out pairs with none, one and two variables."""
        n_each, n_pairs = n / 3, len(task.pairs.trained) + len(task.pairs.held_out)
        n_trained = round(n_each * len(task.pairs.trained) / n_pairs)
        sizes = {name: n_trained if name.endswith("tr") else round(n_each) - n_trained for name in SPLITS}
        batches = [task.sample_split(rng, size, name) for name, size in sizes.items() if size]
        n1, n2 = (np.concatenate([batch.labels[name][:, 0] for batch in batches]) for name in ("n1", "n2"))
        tested = rng.random((task.modulus, task.modulus)) < TEST_FRACTION  # [lower, higher]
        sums = cls(
            np.concatenate([batch.tokens for batch in batches]),
            np.concatenate([batch.targets[:, 0] for batch in batches]),
            tested[np.minimum(n1, n2), np.maximum(n1, n2)],
        )
        if (~sums.tested).sum() < task.modulus or not sums.tested.any():
            raise BindscopeError(f"--n: {n} sequences are too few to fit probes on some pairs and test them on others.")
        return sums


@dataclass(frozen=True, eq=False)
class Probed:
    """What probes at one site read: which tested sequences they get right, and how many of those they were fitted on."""

    right: np.ndarray  # [test] bool
    fit_accuracy: float


def probe_answers(model: Transformer, sums: ProbeSums, labels: np.ndarray | None = None) -> dict[str, Probed]:
    """Linear probes for the answer at both ``PROBED``; ``labels`` [batch] are fitted instead of the answers if given."""
    refuse_other_shapes(model)
    labels = sums.answers if labels is None else labels
    streams = dict(zip(PROBED, read_sums(model, sums.tokens, SITES)))
    return {site: _probe(stream[:, 0].astype(float), sums, labels) for site, stream in streams.items()}


def _probe(stream: np.ndarray, sums: ProbeSums, labels: np.ndarray) -> Probed:
    fitted = ~sums.tested
    read = fit_linear_probe(stream[fitted], labels[fitted], stream)  # [batch]
    return Probed((read == sums.answers)[sums.tested], float((read == labels)[fitted].mean()))


def fit_linear_probe(fit: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Ridge regression from rows [fit, d_model] to one-hot labels [fit]; the class with the largest output [test]."""
    mean = fit.mean(0)
    size = max(float((fit - mean).std()), 1e-12)
    x, one_hot = (fit - mean) / size, np.eye(int(labels.max()) + 1)[labels]
    fraction = one_hot.mean(0)
    weights = np.linalg.solve(x.T @ x / len(x) + RIDGE * np.eye(x.shape[1]), x.T @ (one_hot - fraction) / len(x))
    return ((test - mean) / size @ weights + fraction).argmax(1)


def add_alone(model: Transformer, task: AssignAddTask) -> xr.Dataset:
    """The circuit alone on all pairs."""
    forms, right, groups = SumForms.of(model, task), right_answers(task), pair_groups(task)
    correct = answers_alone(forms) == right
    direct = answers_alone(forms, with_mlp=False) == right
    sizes = [group.sum() for group in groups.values()]
    variables = {
        **fraction_variables("accuracy", ("group",), [correct[group].sum() for group in groups.values()], sizes),
        **fraction_variables("direct_accuracy", (), direct.sum(), direct.size),
        "n": count_variable(("group",), sizes),
        "correct": (("n1", "n2"), correct.astype(np.int8)),
    }
    return xr.Dataset(variables, {"group": list(groups)})
