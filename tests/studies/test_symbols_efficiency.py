"""AS1 to AS7 and AS10 on made-up curves: all three verdicts of each, their controls, figures and sentences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from bindscope.studies.framework.claims import Finding
from bindscope.studies.framework.experiments import (
    SHIPPED_DATASETS,
    find_experiment,
    load_experiment_dataset,
    save_experiment_dataset,
)
from bindscope.studies.framework.results import Context, NotTestable
from bindscope.studies.plots.style import save_figure
from bindscope.studies.symbols.efficiency.conclude import conclude_curves
from bindscope.studies.symbols.efficiency.draw import draw_curves
from bindscope.studies.symbols.efficiency.gain import CHOSEN, choose_gain, conclude_gain
from bindscope.studies.symbols.efficiency.judge import AS1, AS2, AS3, AS7
from bindscope.studies.symbols.efficiency.measure import RESULTS, compute_curves
from bindscope.studies.symbols.experiments.define import CHOSEN_GAIN, EXPERIMENTS
from bindscope.studies.symbols.tasks.judge import AS4, AS5, AS6, AS10
from studies.made_curves import made_curves, made_gains

PLAIN = {32: 1.1, 128: 0.9, 512: 0.45, 2048: 0.05}
BOTH = {8: 1.0, 16: 0.6, 32: 0.2, 128: 0.03}
FAILS = {32: 1.0, 512: 1.1, 2048: 1.0}
RELATION = {4: 0.14, 64: 0.05, 2048: 0.03}
SAME = {"plain": PLAIN, "both": BOTH, "one-hot-mlp": FAILS, "embedding-mlp": FAILS, "relation-mlp": RELATION}
PRINTING = {"plain": {64: 1.0, 256: 0.9, 512: 0.6}, "kq": {16: 0.9, 32: 0.4, 64: 0.06}}
PRINTING_SYMBOLS = {"plain": {128: 0.8, 512: 0.5}, "both": {128: 0.7, 256: 0.2, 512: 0.1}}
AT_512 = {"plain": {512: 0.65}, "vo": {512: 0.14}, "kq": {512: 0.002}, "both": {512: 0.001}}
REPETITION = AT_512 | {"rnn": {8192: 0.17}, "lstm": {8192: 0.29}, "embedding-mlp": {8192: 1.02}}
MAJORITY = {"plain": {128: 1.1, 512: 1.02}, "both": {128: 0.8, 512: 0.01}}


def judge(claim, curves, gains=None, **made) -> Finding:
    return claim.judge(results_of(claim, curves, gains, **made))


def results_of(claim, curves, gains=None, **made):
    presets = {
        AS4: "templates-print-real",
        AS5: "templates-print",
        AS6: "templates-aba-abb",
        AS10: "templates-majority",
    }
    dataset = made_curves(curves, preset=presets.get(claim, "templates-same-different"), **made)
    dataset.attrs["title"] = f"experiment {claim.results[0]}"
    if "gain" not in claim.results:
        return {claim.results[0]: dataset}
    return {claim.results[0]: dataset, "gain": made_gains() if gains is None else gains, CHOSEN: xr.Dataset()}


CASES = [
    (AS1, SAME),
    (AS2, SAME),
    (AS3, SAME),
    (AS7, SAME),
    (AS4, PRINTING),
    (AS5, PRINTING_SYMBOLS),
    (AS6, REPETITION),
    (AS10, MAJORITY),
]
EACH = pytest.mark.parametrize(("claim", "curves"), CASES, ids=[claim.id for claim, _ in CASES])


@EACH
@pytest.mark.parametrize("n_seeds", [1, 3])
def test_the_papers_curves_replicate(claim, curves, n_seeds):
    finding = judge(claim, curves, n_seeds=n_seeds)
    assert finding.verdict == "replicates", finding.reason
    assert finding.quantities
    assert finding.control
    assert not any(math.isinf(quantity.value) for quantity in finding.quantities)
    if n_seeds > 1:
        assert any(quantity.low is not None for quantity in finding.quantities)


@EACH
def test_where_training_sequences_are_not_learned_the_control_fails(claim, curves):
    finding = judge(claim, curves, train=0.4)
    assert finding.verdict == "differs"
    assert "its control is not" in finding.reason
    assert "training itself fails" in finding.reason


@EACH
def test_without_the_models_it_is_about_a_claim_is_not_testable(claim, curves):
    finding = judge(claim, {"mimetic": {32: 0.5}})
    assert finding.verdict == "not testable"
    assert f"'bindscope experiment {claim.results[0]}'" in finding.reason


@pytest.mark.parametrize(
    ("claim", "changed", "words"),
    [
        (AS1, {"plain": {32: 1.1, 512: 1.0, 2048: 0.9}}, "not from above a half"),
        (AS1, {"plain": {32: 0.2, 512: 0.1, 2048: 0.05}}, "not from above a half"),
        (AS1, {"plain": {32: 0.7, 128: 1.2, 512: 0.4, 2048: 0.1}}, "it rises at n = 128"),
        (AS1, {"plain": {32: 1.1, 512: 0.8, 2048: [0.01, 0.01, 1.3]}}, "its interval there reaches 2"),
        (AS1, {"one-hot-mlp": {2048: 0.3}}, "give the answer away"),
        (AS2, {"both": {64: 0.9, 128: 0.8, 256: 0.3}}, "not 4"),
        (AS2, {"both": {64: 0.9, 1024: 0.6, 4096: 0.55}}, "does not come to half of the loss by n = 4,096"),
        (AS2, {"both": {16: 0.7, 32: 0.2, 512: 0.1}}, "these are not few"),
        (AS3, {"embedding-mlp": {32: 1.0, 2048: 0.4}}, "learns something"),
        (AS3, {"plain": {32: 1.0, 2048: 0.8}}, "too few for it as well"),
        (AS7, {"relation-mlp": {4: 0.9, 64: 0.6, 2048: 0.05}}, "more than 16"),
        (AS7, {"relation-mlp": {4: 0.3, 2048: 0.3}}, "not solved"),
        (AS7, {"embedding-mlp": {32: 0.1}}, "is not what helps"),
    ],
)
def test_other_curves_of_equal_symbols_differ(claim, changed, words):
    finding = judge(claim, SAME | changed)
    assert finding.verdict == "differs", finding.reason
    assert words.lower() in finding.reason.lower()


@pytest.mark.parametrize(
    ("claim", "curves", "words"),
    [
        (AS4, PRINTING | {"kq": {64: 0.9, 256: 0.3}}, "not 4"),
        (AS5, PRINTING_SYMBOLS | {"plain": {128: 0.5, 512: 0.1}}, "does not need the scalings"),
        (AS5, PRINTING_SYMBOLS | {"both": {512: 0.7, 8192: 0.6}}, "not 0.25 or less"),
        (AS6, REPETITION | {"vo": {512: 0.001}}, "not in this order"),
        (AS6, REPETITION | {"both": {512: 0.3}}, "not solved"),
        (AS6, REPETITION | {"lstm": {8192: 0.8}}, "not between"),
        (AS6, REPETITION | {"embedding-mlp": {8192: 0.1}}, "learns something"),
        (AS10, MAJORITY | {"plain": {512: 0.5}}, "does learn something"),
        (AS10, {"plain": {8192: 1.0}, "both": {8192: 0.7}}, "not solved"),
    ],
)
def test_other_curves_of_other_tasks_differ(claim, curves, words):
    finding = judge(claim, curves)
    assert finding.verdict == "differs", finding.reason
    assert words.lower() in finding.reason.lower()


@pytest.mark.parametrize(
    ("claim", "curves", "words"),
    [
        (AS1, SAME | {"plain": {32: 1.1, 64: 1.0, 256: 0.9}}, "same-different --full'"),
        (AS1, SAME | {"plain": {32: 1.1, 2048: 0.1}}, "3 or more are needed"),
        (AS2, SAME | {"plain": {32: 1.1, 64: 1.0}, "both": {8: 1.1, 16: 0.9}}, "same-different --full'"),
        (AS4, {"plain": {64: 1.0}, "kq": {16: 0.9, 32: 0.8}}, "print-real --full'"),
        (AS5, PRINTING_SYMBOLS | {"both": {128: 0.9, 512: 0.8}}, "print-symbolic --full'"),
        (AS5, PRINTING_SYMBOLS | {"plain": {64: 0.8}}, "as many"),
        (AS6, REPETITION | {"rnn": {512: 1.0}}, "no run of RNN"),
        (AS10, MAJORITY | {"both": {512: 0.6}}, "majority --full'"),
        (AS10, {"plain": {128: 1.0}, "both": {512: 0.1}}, "with and without scaling"),
    ],
)
def test_sizes_that_cannot_show_it_are_not_testable(claim, curves, words):
    finding = judge(claim, curves)
    assert finding.verdict == "not testable", finding.reason
    assert words.lower() in finding.reason.lower()


def test_a_plain_model_that_never_gets_there_gives_a_bound():
    finding = judge(AS4, PRINTING)
    ratio = finding.quantities[0]
    assert ratio.label.endswith("at least")
    assert ratio.value == pytest.approx(512 / (16 * 2 ** (0.4 / 0.5)), rel=1e-6)  # half loss between 16 and 32
    assert "at least 18" in finding.reason
    assert finding.quantities[1].label.endswith("more than")


def test_the_papers_heads_are_judged_apart_where_they_were_trained():
    full = SAME | {("plain", 16): {128: 0.81, 512: 0.45, 2048: 0.04}, ("both", 16): {16: 0.6, 64: 0.03}}
    assert "with 16 heads" in judge(AS2, full).reason
    assert "with 4 heads" in judge(AS2, SAME).reason
    assert [quantity.value for quantity in judge(AS1, full).quantities] == pytest.approx([0.81, 0.45, 0.04])


def test_one_seed_far_off_makes_the_interval_too_wide():
    wide = {8: 1.0, 16: [0.6, 0.7, 0.5], 32: [0.2, 0.3, 0.9], 128: [0.03, 0.03, 0.9]}
    finding = judge(AS2, SAME | {"both": wide})
    assert finding.verdict == "inconclusive"
    assert "by the interval's lower end" in finding.reason


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        (made_gains(best=300.0), "validation loss on aba-abb chooses 300: train 'same-different' with it"),
        (made_gains(preset="templates-same-different"), "that is the same task"),
        (xr.Dataset(), "'bindscope experiment gain' says it"),
    ],
)
def test_a_gain_that_no_other_task_chose_makes_saving_inconclusive(gains, words):
    finding = judge(AS2, SAME, gains)
    assert finding.verdict == "inconclusive", finding.reason
    assert words in finding.reason


def test_curves_at_the_chosen_gain_take_the_place_of_the_others():
    slow = {8: 1.0, 128: 0.9, 512: 0.6}
    results = results_of(AS2, SAME | {"both": slow}, made_gains(best=300.0))
    assert AS2.judge(results).verdict == "differs"
    results[CHOSEN] = made_curves({"both": BOTH}).assign_attrs(common_changes='{"model.identity_gain": 300.0}')
    finding = AS2.judge(results)
    assert finding.verdict == "replicates", finding.reason
    assert "the gain of 300 is the one that another task's validation loss chooses" in finding.reason.lower()


def test_the_shipped_experiment_chooses_the_gain_that_is_trained():
    dataset = load_experiment_dataset(SHIPPED_DATASETS / "gain.nc")
    assert choose_gain(dataset) == CHOSEN_GAIN
    assert find_experiment(CHOSEN).changes["model.identity_gain"] == CHOSEN_GAIN


def test_the_gain_with_the_lowest_validation_loss_is_chosen_and_told():
    assert choose_gain(made_gains(best=10.0)) == 10
    assert "lowest with a gain of 10" in conclude_gain(made_gains(best=10.0))


def test_the_figures_and_the_conclusion_tell_every_model(tmp_path):
    curves = SAME | {("plain", 16): {128: 0.81, 512: 0.45}, "kq": {64: 0.2}, "rnn": {64: 1.4}}
    dataset = made_curves(curves)
    figure = draw_curves(dataset)
    left, right = figure.axes
    told = [text.get_text() for axes in (left, right) for text in axes.get_legend().get_texts()]
    assert "transformer" in told
    assert "transformer, 16 heads" in told
    assert told.count("open: the paper's") == 2
    (papers,) = [line for line in left.lines if line.get_label() == "transformer, the paper's"]
    assert list(papers.get_xdata()) == [128, 512, 1024, 2048]
    assert papers.get_markerfacecolor() == "none"
    (ours,) = [line for line in left.lines if line.get_label() == "transformer"]
    assert ours.get_color() == papers.get_color()
    assert ours.get_ydata() == pytest.approx(list(PLAIN.values()))
    assert save_figure(figure, tmp_path / "curves.svg").stat().st_size > 10_000
    text = conclude_curves(dataset)
    assert text.startswith("63 runs of templates-same-different, up to 3 seeds at each n.")
    assert "Transformer: test loss 1.10 at n = 32 and 0.05 at n = 2,048, below a half from n = 4" in text
    assert "MLP with XXᵀ: test loss 0.14 at n = 4 and 0.03 at n = 2,048, below a half from n ≤ 4." in text
    assert "RNN: test loss 1.40 at n = 64." in text
    assert text.endswith(
        "With 16 heads: Transformer: test loss 0.81 at n = 128 and 0.45 at n = 512, below a half from n = 422 [410–434]."
    )


@EACH
def test_every_claim_is_drawn(claim, curves, tmp_path):
    dataset = made_curves(curves, preset=find_experiment(claim.results[0]).preset)
    assert save_figure(claim.draw({claim.results[0]: dataset}), tmp_path / "claim.svg").stat().st_size > 5000


def test_a_result_is_the_dataset_made_here_unless_it_was_only_begun(tmp_path, monkeypatch):
    shipped, runs = tmp_path / "shipped", tmp_path / "runs"
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", shipped)
    context = Context(None, runs_directory=runs)
    with pytest.raises(NotTestable, match="bindscope experiment majority"):
        compute_curves("majority", context)
    save_experiment_dataset(made_curves({"plain": {128: 1.0}}), runs / "experiment-majority" / "majority.nc")
    assert compute_curves("majority", context).sizes["variant"] == 1
    save_experiment_dataset(made_curves(MAJORITY), shipped / "majority.nc")
    assert compute_curves("majority", context).sizes["variant"] == 4  # more are shipped than were begun here
    usual = [variant for variant in find_experiment("majority").variants if not variant.full]
    whole = made_curves(_by_model(usual), n_seeds=1)
    save_experiment_dataset(whole, runs / "experiment-majority" / "majority.nc")
    assert compute_curves("majority", context).sizes == whole.sizes


def _by_model(variants):
    models = dict.fromkeys(variant.labels["model"] for variant in variants)
    return {
        model: {variant.labels["n"]: 0.5 for variant in variants if variant.labels["model"] == model}
        for model in models
    }


def test_every_curve_result_is_an_experiment_of_its_name():
    assert {result.name for result in RESULTS} >= {claim.results[0] for claim, _ in CASES}
    for result in RESULTS:
        assert find_experiment(result.name).name == result.name
        assert not result.kept
    assert np.all([claim.paper for claim, _ in CASES])


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_the_listed_time_is_near_what_the_shipped_runs_took(experiment):
    path = SHIPPED_DATASETS / f"{experiment.name}.nc"
    if not path.is_file():
        pytest.skip("its dataset is not shipped")
    dataset = load_experiment_dataset(path)
    usual = [
        variant.name for variant in experiment.variants if not variant.full and variant.name in dataset.variant.values
    ]
    taken = float(dataset.seconds.sel(variant=usual).mean()) / 60
    assert taken / 4 < experiment.minutes < 4 * taken  # other work slowed down some of them
