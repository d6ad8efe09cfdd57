"""What ``open_run`` gives for a run on modular addition equals the model, its weights and the study, and draws itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from matplotlib.figure import Figure

import bindscope
from bindscope.errors import BindscopeError
from bindscope.interventions.transplant import transplant
from bindscope.measures.arithmetic.asked import ask_splits
from bindscope.measures.arithmetic.components import read_fit
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import run as run_model
from bindscope.notebook import Drawn, RunView, SumsView
from bindscope.notebook.opening import what_others_have
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.studies.assign_add.learning.phases import spikes_of
from bindscope.studies.assign_add.learning.spikes import read_spikes, spike_table
from bindscope.studies.framework.trajectory import trajectory_dataset

SUM = "f=1 _ l=17 e=30 | l+f"
ANSWER = "18"
NEURON = 7


@pytest.fixture(scope="module")
def view() -> RunView:
    return bindscope.open_run("assign-add")


@pytest.fixture(scope="module")
def run() -> Run:
    return Run.open(find_run("assign-add"))


@pytest.fixture(scope="module")
def spikes(view: RunView) -> Drawn:
    return view.spikes()


def test_the_family_of_a_run_chooses_its_view(view: RunView) -> None:
    assert isinstance(view, SumsView)
    assert not isinstance(bindscope.open_run("binding-laptop"), SumsView)


def test_a_typed_sum_is_that_of_the_task(view: RunView, run: Run) -> None:
    tokens = view.parse(SUM)
    assert tokens.shape == (16,)
    assert run.config.task.render(tokens) == SUM
    with pytest.raises(BindscopeError, match="'d' is used but never assigned"):
        view.predict("c=1 b=17 | d+19")


def test_an_answer_is_the_softmax_at_the_equals_sign(view: RunView, run: Run) -> None:
    steps = [run.steps[4], run.steps[-1]]
    found = view.predict(SUM, steps)
    assert found.probability.dims == ("step", "output")
    tokens = torch.from_numpy(view.parse(SUM))[None]
    for step in steps:
        expected = run_model(run.checkpoint(step), tokens).logits[0, -1].detach().double().softmax(0)
        np.testing.assert_allclose(found.probability.sel(step=step), expected, atol=1e-5)
    assert found.attrs["answer"] == ANSWER
    assert list(found.output.values[:3]) == ["0", "1", "2"]
    assert view.predict(SUM, "all").step.values.tolist() == list(run.steps)


def test_attention_is_that_of_the_model(view: RunView, run: Run) -> None:
    tokens = torch.from_numpy(view.parse(SUM))[None]
    found = view.attention(SUM)
    assert found.pattern.dims == ("layer", "query", "key")
    assert int(found.step) == run.steps[-1]
    for layer in (1, 2):
        site = f"L{layer - 1}.pattern"
        direct = run_model(run.checkpoint("last"), tokens, read=[site])[site][0, 0].detach()
        np.testing.assert_allclose(found.pattern.sel(layer=layer), direct, atol=1e-6)
    several = view.attention(SUM, [run.steps[0], run.steps[-1]])
    np.testing.assert_allclose(several.pattern.isel(step=-1), found.pattern, atol=1e-6)


def test_splits_and_spikes_are_those_of_the_evaluations(view: RunView, run: Run, spikes: Drawn) -> None:
    trajectory = trajectory_dataset(run.metrics, run.manifest.config)
    splits, found = view.splits(), spikes_of(trajectory)
    xr.testing.assert_equal(splits.split_accuracy, trajectory.split_accuracy)
    assert read_spikes(splits) == read_spikes(view.progress()) == found
    assert spikes.spike.values.tolist() == [spike.number for spike in found]
    for spike in found:
        one = spikes.sel(spike=spike.number)
        for end, step in (("before", spike.before_step), ("after", spike.after_step)):
            expected = trajectory.split_accuracy.sel(step=step).values
            np.testing.assert_array_equal(one[f"accuracy_{end}"], expected)
        assert set(one.split.values[one.jumped.values]) == set(spike.splits)
        if int(one.kept_before) >= 0:
            assert int(one.kept_before) <= spike.before_step < spike.after_step <= int(one.kept_after)
            assert {int(one.kept_before), int(one.kept_after)} <= set(run.steps)


def test_a_run_without_spikes_has_an_empty_table_and_no_figure(view: RunView, run: Run) -> None:
    early = trajectory_dataset(run.metrics, family=run.config.task.family).isel(step=slice(0, 3))
    assert not spikes_of(early)

    class Early:
        metrics, steps = [record for record in run.metrics if record["step"] <= 200], run.steps

    table = spike_table(Early())  # type: ignore[arg-type]
    assert table.sizes == {"spike": 0, "split": 9}
    with pytest.raises(BindscopeError, match="no spike"):
        Drawn.of(table, "spikes").plot()


def test_progress_is_the_result_of_the_study(view: RunView) -> None:
    kept, found = view.result("progress"), view.progress()
    names = list(kept.data_vars)
    assert {"ov2_mlp2_accuracy", "attn_l2_equal_to_values_low"} <= set(names)
    for name in names:
        xr.testing.assert_equal(found[name], kept[name])


def test_the_circuit_is_in_the_weights(view: RunView, run: Run) -> None:
    model, step = run.checkpoint(run.steps[5]), run.steps[5]
    found, attention = view.circuit(step), model.layers[0].attention
    equals = model.W_E[60].detach().double() @ attention.W_Q[0].double()
    position = model.pos_embed[13].double() @ attention.W_K[0].double()
    expected = (equals @ position).item() / np.sqrt(model.config.d_head)
    np.testing.assert_allclose(found.qk1.sel(query="=", key="position 13"), expected, rtol=1e-6)
    assert found.attrs["step"] == step


def test_a_neuron_is_what_the_mlp_is_given(view: RunView, run: Run) -> None:
    found, model = view.neuron(NEURON), run.checkpoint("last")
    for n1, n2 in ((0, 0), (41, 3)):
        padded = "_ " * 12
        tokens = torch.from_numpy(view.parse(f"{padded}| {n1}+{n2}"))[None]
        stream = run_model(model, tokens, read=["L1.resid_mid"])["L1.resid_mid"][0, -1].detach()
        expected = float(stream.double() @ model.layers[1].mlp.up.weight[NEURON].double())
        measured = found.preactivation.sel(source="model")[n1, n2]
        np.testing.assert_allclose(measured, expected, rtol=1e-4, atol=1e-4)
    for source in found.source.values:
        one = found.sel(source=source)
        residual = (one.preactivation - one.fitted).values
        explained = 1 - (residual**2).mean() / one.preactivation.values.var()
        np.testing.assert_allclose(one.explained_variance, explained, atol=1e-9)
        np.testing.assert_allclose(read_fit(found, source).values, one.fitted)
    with pytest.raises(BindscopeError, match="neuron 512"):
        view.neuron(512)


def test_a_transplant_is_the_model_with_the_other_s_parts(view: RunView, run: Run) -> None:
    first, last = run.steps[-4], run.steps[-1]
    found = view.transplant(first, "last", ["nothing", "everything", "QK1 + variables"], n=30, seed=4)
    np.testing.assert_array_equal(found.accuracy.sel(part="nothing"), found.receiver_accuracy)
    np.testing.assert_array_equal(found.accuracy.sel(part="everything"), found.donor_accuracy)
    asked = ask_splits(run.config.task, np.random.default_rng(4), 30)
    model = transplant(run.checkpoint(first), run.checkpoint(last), ["QK1", "variables"])
    right = read_answers(model, asked.batch).argmax(1) == asked.batch.targets[:, 0]
    expected = [right[rows].mean() for rows in asked.splits.values()]
    np.testing.assert_allclose(found.accuracy.sel(part="QK1 + variables"), expected)
    assert (found.attrs["receiver"], found.attrs["donor"]) == (first, last)
    with pytest.raises(BindscopeError, match="no part 'QK7'"):
        view.transplant("first", "last", "QK7", n=2)
    with pytest.raises(BindscopeError, match="at least one part"):
        view.transplant("first", "last", [])


def test_everything_draws_itself_also_from_a_file(view: RunView, run: Run, spikes: Drawn, tmp_path: Path) -> None:
    drawn = [view.predict(SUM), view.attention(SUM), view.attention(SUM, list(run.steps[-3:])), view.splits(), spikes]
    drawn += [view.progress(), view.circuit(), view.neuron(NEURON)]
    drawn.append(view.transplant("first", "last", "pattern 2", n=2))
    for index, dataset in enumerate(drawn):
        assert dataset.plot().axes
        path = tmp_path / f"{index}.nc"
        dataset.to_netcdf(path, engine="h5netcdf")
        again = xr.load_dataset(path, engine="h5netcdf")
        assert isinstance(Drawn.of(again, again.attrs["figure"]).plot(), Figure)
    assert isinstance(view.neuron(NEURON).plot(source="circuit"), Figure)
    with pytest.raises(BindscopeError, match="no source 'mlp'"):
        view.neuron(NEURON).plot(source="mlp")


def test_what_belongs_to_another_family_is_refused_by_name(view: RunView) -> None:
    programs = bindscope.open_run("binding-laptop")
    with pytest.raises(BindscopeError, match=r"its task is assign_add; 'patch' is for runs on programs"):
        view.patch("a=5;#a:", "a=6;#a:")
    with pytest.raises(BindscopeError, match=r"its task is binding; 'splits' is for runs on sums"):
        programs.splits()
    assert not hasattr(view, "lens")
    assert not hasattr(programs, "neuron")
    with pytest.raises(AttributeError, match="no attribute 'split'"):
        _ = view.split
    others = what_others_have(RunView)
    assert "programs" in others["predict"]
    assert "sums" in others["predict"]
    assert "verify" not in others


def test_what_all_runs_share_is_there(view: RunView, run: Run) -> None:
    assert view.steps == run.steps
    assert view.phases().phase.values[0] == "addition"
    assert "2 layers of 1 head" in view._repr_html_()
    assert repr(view) == f"<run assign-add: assign_add, {len(run.steps)} checkpoints>"


def test_what_is_typed_is_what_the_model_reads(view: RunView, run: Run) -> None:
    logits = run_model(view.model(), view.tokens(SUM)).logits[0, -1]
    assert int(logits.argmax()) == int(ANSWER)
    with pytest.raises(BindscopeError, match="sum"):
        view.tokens("a+")
