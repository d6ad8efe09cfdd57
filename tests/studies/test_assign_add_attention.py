"""AA4 and one typed sum on a run whose weights are written, and AA4's judge on datasets whose verdict is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.attention import FORMS, LAYOUT, fill_layout
from bindscope.measures.arithmetic.one_sum import attention_of, attention_over_steps, looks_of_equals
from bindscope.measures.evaluation import read_answers
from bindscope.model.transformer import Transformer
from bindscope.studies.assign_add.attention.draw import draw_sum
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import find_study
from bindscope.studies.plots.style import save_figure
from bindscope.tasks.assign_add import SPLIT_NAMES
from measures.constructed_adder import TASK, adder_config, construct_adder
from studies.made_sums import STEPS, keep_step, make_sums

STUDY = find_study("assign_add")
AA4 = STUDY.find_claim("AA4")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Library:
    run = make_sums(tmp_path_factory.mktemp("sums") / "made")
    return Library(run, STUDY.results, run.path / "results", n=20)


def test_the_adder_shows_all_three_looks_from_the_step_on_at_which_it_is_written(made: Library, tmp_path: Path):
    dataset = made.fill("attention").dataset
    assert dataset is not None
    assert dataset.step.values.tolist() == list(STEPS)
    assert (dataset.overall_fraction.sel(step=[100, 200]) == 1).all()
    assert float(dataset.overall_mass.isel(step=-1).min()) > 0.99
    assert float(dataset.overall_fraction.sel(step=0, look="values")) < 0.1
    finding = AA4.judge({"attention": dataset})
    assert finding.verdict == "replicates", finding.reason
    assert save_figure(AA4.draw({"attention": dataset}), tmp_path / "aa4.svg").stat().st_size > 5000


def test_mean_maps_of_the_adder_point_from_equals_to_operands_and_values(made: Library):
    dataset = made.fill("attention").dataset
    assert dataset is not None
    maps = dataset.mean_pattern.sel(form="two variables").isel(query=15)
    assert set(np.argsort(maps.sel(layer=1).values)[-2:].tolist()) == {13, 14}
    assert set(np.argsort(maps.sel(layer=2).values)[-2:].tolist()) == {5, 10}
    assert dataset.token.sel(form="two variables").values[[4, 5, 9, 10]].tolist() == ["b", "n", "c", "n"]


def test_only_a_new_checkpoint_is_measured_when_a_run_grows(tmp_path: Path):
    run = make_sums(tmp_path / "made", steps=(0, 100))
    folder = run.path / "results"
    whole = Library(run, STUDY.results, folder, n=5).fill("attention").dataset
    assert whole is not None
    mark = whole.copy(deep=True)
    mark["fraction"][:] = 0.123  # what was saved is recognised by this
    mark.to_netcdf(folder / "attention.nc", engine="h5netcdf")
    grown = Library(keep_step(run, 200), STUDY.results, folder, n=5).fill("attention").dataset
    assert grown is not None
    assert grown.step.values.tolist() == [0, 100, 200]
    np.testing.assert_allclose(grown["fraction"].sel(step=[0, 100]), 0.123, atol=1e-6)
    np.testing.assert_allclose(grown["fraction"].sel(step=200), 1)


def test_models_of_another_shape_give_a_reason_instead(tmp_path: Path):
    run = make_sums(tmp_path / "wide", n_heads=2)
    for name in ("attention", "equivalence", "addition", "answer_probes"):
        filled = Library(run, STUDY.results, run.path / "results", n=60).fill(name)
        assert filled.dataset is None
        assert "published shape" in filled.reason


def test_a_layout_keeps_its_columns_and_draws_names_and_numbers():
    row = TASK.parse(LAYOUT.format(FORMS["two variables"]))
    rows = fill_layout(TASK, row, np.random.default_rng(0), 50)
    assert (TASK.sequences.value_positions(rows) == [5, 10]).all()
    assert len(np.unique(rows[:, 4])) == TASK.n_variables
    assert len(np.unique(rows[:, 5])) > TASK.modulus // 2
    assert (rows[:, 4] == rows[:, 13]).all()
    assert (rows[:, 4] != rows[:, 9]).all()


def looks(
    found: float = 1.0, fresh: float = 0.1, shuffled: float = 0.05, accuracy: float = 1.0, look: str = "values"
) -> xr.Dataset:
    """Two steps; ``found`` and ``fresh`` are those of one look, the others are perfect."""
    names = ["operands", "numbers", "values"]
    fraction = np.array([[0.1, 0.1, 0.1], [1.0, 1.0, 1.0]])
    untrained = np.full(3, 0.1)
    fraction[1, names.index(look)], untrained[names.index(look)] = found, fresh
    variables: dict = {}
    for name, values in (("overall_fraction", fraction), ("overall_mass", fraction * 0.7)):
        variables |= {f"{name}{end}": (("step", "look"), values) for end in ("", "_low", "_high")}
    variables |= {f"untrained_overall_fraction{end}": ("look", untrained) for end in ("", "_low", "_high")}
    n_splits = len(SPLIT_NAMES)
    variables["shuffled_fraction"] = (("step", "split"), np.full((2, n_splits), shuffled))
    variables["fraction"] = (("step", "split", "look"), np.repeat(fraction[:, None], n_splits, axis=1))
    variables["untrained_fraction"] = (("split", "look"), np.repeat(untrained[None], n_splits, axis=0))
    variables["accuracy"] = (("step", "split"), np.full((2, n_splits), accuracy))
    variables["mean_pattern"] = (("form", "layer", "query", "key"), np.full((1, 2, 16, 16), 1 / 16))
    coordinates = {
        "step": [0, 500],
        "look": names,
        "split": list(SPLIT_NAMES),
        "layer": [1, 2],
        "form": ["two variables"],
        "token": (("form", "query"), [["·"] * 16]),
    }
    return xr.Dataset(variables, coordinates, {"n": 100, "run": "written"})


@pytest.mark.parametrize("look", ["operands", "numbers", "values"])
def test_each_look_must_be_there_and_not_in_a_fresh_model(look: str):
    assert AA4.judge({"attention": looks(look=look)}).verdict == "replicates"
    assert AA4.judge({"attention": looks(found=0.8, look=look)}).verdict == "differs"
    control = AA4.judge({"attention": looks(fresh=0.7, look=look)})
    assert control.verdict == "differs"
    assert control.reason.startswith("The criterion is met, but its control is not")


@pytest.mark.parametrize("look", ["operands", "numbers", "values"])
def test_a_look_whose_interval_spans_the_bound_is_inconclusive(look: str):
    assert AA4.judge({"attention": looks(found=0.905, look=look)}).verdict == "inconclusive"
    assert AA4.judge({"attention": looks(fresh=0.49, look=look)}).verdict == "inconclusive"


def test_the_look_at_operands_is_judged_where_at_most_one_is_a_variable():
    dataset = looks()
    two = [split for split in SPLIT_NAMES if split.startswith("2")]
    dataset["fraction"].loc[{"look": "operands", "split": two}] = 0.1
    dataset["overall_fraction"].loc[{"step": 500, "look": "operands"}] = 0.6
    finding = AA4.judge({"attention": dataset})
    assert finding.verdict == "replicates", finding.reason
    (beside,) = [quantity for quantity in finding.quantities if "all nine splits" in quantity.label]
    assert beside.value == pytest.approx(0.6)
    dataset["fraction"].loc[{"look": "operands", "split": "1var"}] = 0.1
    assert AA4.judge({"attention": dataset}).verdict == "differs"


def test_columns_of_another_sequence_must_not_do_as_well():
    finding = AA4.judge({"attention": looks(shuffled=0.6)})
    assert finding.verdict == "differs"
    assert "another sequence" in finding.reason


def test_a_run_that_has_not_learned_says_nothing_about_looks():
    finding = AA4.judge({"attention": looks(accuracy=0.5)})
    assert finding.verdict == "not testable"
    assert "50 %" in finding.reason


def test_one_sum_has_the_model_s_own_answer_and_rows_that_sum_to_one():
    adder, tokens = construct_adder(), TASK.parse("c=1 _ b=7 | b+9")
    dataset = attention_of(adder, TASK, tokens)
    logits = torch.from_numpy(read_answers(adder, TASK.to_batch(tokens))[0]).double()
    np.testing.assert_allclose(dataset.probability, logits.softmax(0), atol=1e-6)
    np.testing.assert_allclose(dataset.pattern.sum("key"), 1, atol=1e-5)
    assert dataset.attrs["answer"] == "3" == str(dataset.output.values[int(dataset.probability.argmax("output"))])
    assert dataset.value_position.values.tolist() == [4, 14]
    assert dataset.token.values.tolist()[:6] == ["c", "1", "·", "b", "7", "·"]
    found = looks_of_equals(dataset)
    np.testing.assert_allclose(found.operands, 0.5, atol=1e-3)
    np.testing.assert_allclose(found["values"], 0.5, atol=1e-3)


def test_both_figures_of_one_sum_are_drawn(tmp_path: Path):
    fresh = Transformer(adder_config(), torch.Generator().manual_seed(1)).eval()
    models = [(0, fresh), (100, construct_adder())]
    over = attention_over_steps(models, TASK, TASK.parse("c=1 b=7 | b+c")).assign_attrs(run="made")
    assert over.pattern.dims == ("step", "layer", "query", "key")
    assert over.token.dims == ("query",)
    for name, dataset in (("steps", over), ("maps", over.isel(step=[1]))):
        assert save_figure(draw_sum(dataset), tmp_path / f"{name}.svg").stat().st_size > 5000


def test_models_with_several_heads_have_no_single_map():
    config = dataclasses.replace(adder_config(), n_heads=2)
    model = Transformer(config, torch.Generator().manual_seed(1)).eval()
    with pytest.raises(BindscopeError, match="2 heads"):
        attention_of(model, TASK, TASK.parse("c=1 b=7 | b+9"))
