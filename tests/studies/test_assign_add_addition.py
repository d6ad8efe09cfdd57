"""AA5 and AA6 on a run whose weights are written, and their judges on datasets whose verdict is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.measures.arithmetic.addition import PROBED
from bindscope.measures.stats.fractions import fraction_variables
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import find_study, verify
from bindscope.studies.plots.style import save_figure
from measures.constructed_adder import TASK
from studies.made_sums import make_sums

STUDY = find_study("assign_add")
AA5, AA6 = (STUDY.find_claim(name) for name in ("AA5", "AA6"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Library:
    run = make_sums(tmp_path_factory.mktemp("sums") / "made", steps=(0, 100))
    return Library(run, STUDY.results, run.path / "results", n=600)


def test_the_written_circuit_adds_alone_and_is_read_behind_its_mlp(made: Library, tmp_path: Path):
    judged = verify(made, [AA6]).judged[0]
    addition, probes = judged.datasets["addition"], judged.datasets["answer_probes"]
    assert (addition.correct.sel(step=100) == 1).all()
    assert (addition.accuracy.sel(step=100) == 1).all()
    assert float(addition.accuracy.sel(step=0, group="all")) < 0.3
    assert float(addition.untrained_accuracy.sel(group="all")) < 0.3
    np.testing.assert_array_equal(addition.is_trained, TASK.pairs.is_trained)
    by_hand = [float(addition.correct.sel(step=0).values[group].mean()) for group in groups().values()]
    np.testing.assert_allclose(addition.accuracy.sel(step=0), by_hand)
    assert float(probes.accuracy.sel(condition="trained", site=PROBED[1])) > 0.9
    assert float(probes.accuracy.sel(condition="trained", site=PROBED[0])) < 0.1
    assert float(probes.model_accuracy) == 1
    assert save_figure(judged.draw(), tmp_path / "aa6.svg").stat().st_size > 5000


def groups() -> dict[str, np.ndarray]:
    """The groups of pairs by a loop."""
    trained = TASK.pairs.is_trained
    n = TASK.modulus
    swapped = np.array([[trained[b, a] for b in range(n)] for a in range(n)])
    return {
        "all": trained | ~trained,
        "trained": trained,
        "held out": ~trained,
        "swap seen": ~trained & swapped,
        "both held out": ~(trained | swapped),
    }


def test_histograms_count_every_sequence_and_agree_with_the_means(made: Library, tmp_path: Path):
    library = Library(made.run, STUDY.results, tmp_path, n=60)
    judged = verify(library, [AA5]).judged[0]
    dataset = judged.datasets["equivalence"]
    assert (dataset.sum_count.sum("bin") == 60).all()
    assert (dataset.form_count.sum("bin") == 60).all()
    means = (dataset.sum_count * dataset.bin).sum("bin") / 60
    np.testing.assert_allclose(means, dataset.sum_cosine.sel(vector="attention", drop=True), atol=0.021)
    matched = dataset.sum_cosine.sel(step=100, vector="attention", sum_pairing="matched")
    assert float(matched.min()) > 0.999
    assert (dataset.sum_cosine_low <= dataset.sum_cosine + 1e-6).all()
    assert (dataset.sum_cosine_high >= dataset.sum_cosine - 1e-6).all()
    assert save_figure(judged.draw(), tmp_path / "aa5.svg").stat().st_size > 5000


def equivalence(
    sums: tuple[float, float] = (0.97, 0.5),
    forms: tuple[float, float] = (0.97, 0.13),
    fresh: tuple[float, float] = (0.9, 0.88),
    accuracy: float = 1.0,
    half: float = 0.0,
) -> xr.Dataset:
    """Matched and other cosines of both comparisons, and of a fresh model, ± ``half``."""

    def cells(matched: float, other: float, *shape: int) -> np.ndarray:
        return np.broadcast_to([matched, other, other], (*shape, 3)).copy()

    variables: dict = {}
    for end, by in (("", 0.0), ("_low", -half), ("_high", half)):
        over = ("step", "vector", "n_variables", "sum_pairing")
        variables[f"sum_cosine{end}"] = (over, cells(*sums, 2, 2, 3) + by)
        variables[f"form_cosine{end}"] = (("step", "form_variables", "form_pairing"), cells(*forms, 2, 2) + by)
        variables[f"untrained_sum_cosine{end}"] = (over[1:], cells(*fresh, 2, 3) + by)
        variables[f"untrained_form_cosine{end}"] = (("form_variables", "form_pairing"), cells(*fresh, 2) + by)
    variables["sum_count"] = (("step", "n_variables", "sum_pairing", "bin"), np.ones((2, 3, 3, 4), int))
    variables["form_count"] = (("step", "form_variables", "form_pairing", "bin"), np.ones((2, 2, 3, 4), int))
    variables["accuracy"] = (("step", "n_variables"), np.full((2, 3), accuracy))
    coordinates = {
        "step": [0, 500],
        "vector": ["attention", "stream"],
        "n_variables": [0, 1, 2],
        "form_variables": [1, 2],
        "sum_pairing": ["matched", "one other", "both other"],
        "form_pairing": ["matched", "other numbers", "other sequence"],
        "bin": [-0.75, -0.25, 0.25, 0.75],
    }
    return xr.Dataset(variables, coordinates, {"n": 100, "run": "written"})


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, "replicates", ""),
        ({"sums": (0.85, 0.3)}, "differs", "0.850 matched"),
        ({"forms": (0.85, 0.1)}, "differs", "0.850 matched"),
        ({"sums": (0.97, 0.8)}, "differs", "too near"),
        ({"forms": (0.97, 0.9)}, "differs", "too near"),
        ({"fresh": (0.9, 0.4)}, "differs", "control is not"),
        ({"accuracy": 0.6}, "not testable", "60 %"),
        ({"sums": (0.91, 0.3), "half": 0.02}, "inconclusive", "0.910 matched"),
        ({"sums": (0.95, 0.64), "half": 0.02}, "inconclusive", "0.640 with other numbers"),
        ({"fresh": (0.9, 0.7), "half": 0.02}, "inconclusive", "in a fresh model 0.20"),
    ],
)
def test_cosines_must_be_near_one_apart_from_others_and_learned(changes, verdict, words):
    finding = AA5.judge({"equivalence": equivalence(**changes)})
    assert finding.verdict == verdict, finding.reason
    assert words in finding.reason


def addition(alone: float = 0.99, direct: float = 0.03, fresh: float = 0.02) -> xr.Dataset:
    names = ["all", "trained", "held out", "swap seen", "both held out"]
    sizes = np.array([3481, 2436, 1045, 723, 322])
    variables = fraction_variables("accuracy", ("step", "group"), np.array([0.02, alone])[:, None] * sizes, sizes)
    variables |= fraction_variables("direct_accuracy", ("step",), np.full(2, direct * 3481), 3481)
    variables |= fraction_variables("untrained_accuracy", ("group",), fresh * sizes, sizes)
    variables["n"] = (("step", "group"), np.stack([sizes, sizes]))
    variables["correct"] = (("step", "n1", "n2"), np.ones((2, 4, 4), np.int8))
    variables["is_trained"] = (("n1", "n2"), np.eye(4, dtype=np.int8))
    return xr.Dataset(variables, {"step": [0, 500], "group": names}, {"run": "written"})


def probes(
    before: float = 0.01, after: float = 0.98, shuffled: float = 0.02, fresh: float = 0.02, model: float = 0.99
) -> xr.Dataset:
    hits = np.array([[before, after], [0.02, shuffled], [0.02, fresh]]) * 1000
    conditions = ["trained", "shuffled labels", "untrained model"]
    variables = fraction_variables("accuracy", ("condition", "site"), hits, 1000)
    variables |= fraction_variables("model_accuracy", (), model * 1000, 1000)
    coordinates = {"condition": conditions, "site": list(PROBED)}
    return xr.Dataset(variables, coordinates, {"n_fit": 2000, "n_test": 1000, "step": 500})


@pytest.mark.parametrize(
    ("circuit", "read", "verdict", "words"),
    [
        ({}, {}, "replicates", ""),
        ({"alone": 0.9}, {}, "differs", "adds 90.0 %"),
        ({}, {"before": 0.5}, "differs", "read before the MLP"),
        ({}, {"after": 0.5}, "differs", "does not read it after"),
        ({"direct": 0.5}, {}, "differs", "control is not"),
        ({"fresh": 0.5}, {}, "differs", "control is not"),
        ({}, {"shuffled": 0.5}, "differs", "control is not"),
        ({}, {"fresh": 0.5}, "differs", "control is not"),
        ({}, {"model": 0.5}, "not testable", "50 %"),
        ({"alone": 0.955}, {}, "inconclusive", "adds 95.5 %"),
        ({}, {"before": 0.095}, "inconclusive", "read before the MLP (9.5 % [7.8–11.5])"),
        ({}, {"after": 0.905}, "inconclusive", "does not read it after the MLP (90.5 %"),
        ({}, {"shuffled": 0.095}, "inconclusive", "shuffled labels: 9.5 %"),
    ],
)
def test_the_circuit_must_add_and_probes_must_need_the_mlp(circuit, read, verdict, words):
    finding = AA6.judge({"addition": addition(**circuit), "answer_probes": probes(**read)})
    assert finding.verdict == verdict, finding.reason
    assert words in finding.reason
