"""The dataset of a run says what its records say; its figure can always be drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.measures.binding.phases import curves_from_evaluations, detect_phases
from bindscope.measures.scores import score_halves, score_reals, score_tokens
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset, transitions_of
from bindscope.studies.plots.panels import figure_trajectory, trajectory_panels
from bindscope.studies.plots.style import figure_to_svg, format_fraction, format_step, save_figure, set_step_axis
from measures.simulated_runs import SimulatedRun

RUN = SimulatedRun()


def sums_records(steps=range(0, 1000, 100)) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    records = []
    for step in steps:
        splits: dict[str, Any] = {}
        for index, name in enumerate(("0tr", "0add", "1tr", "1add", "1var", "2tr", "2add", "2var1", "2var2")):
            targets = rng.integers(0, 59, 200)
            known = rng.random(200) < min(1.0, step / (100 * (index + 1)))
            outputs = np.eye(59)[np.where(known, targets, rng.integers(0, 59, 200))]
            splits[name] = score_tokens(outputs, targets)
            if name.endswith("add"):
                splits[name] |= score_halves(outputs, targets, rng.random(200) < 0.7)
        records.append({"step": step, "loss": 1.0, **splits, "watched": {}})
    return records


def templates_records(real: bool = True, steps=(0, 10, 20)) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    targets = np.where(rng.random(100) < 0.5, 1.0, -1.0)
    records = []
    for step in steps:
        if real:
            splits = {name: score_reals(targets * step / 25, targets) for name in ("train", "validation", "test")}
        else:
            tokens = rng.integers(0, 9, 100)
            splits = {name: score_tokens(rng.normal(size=(100, 9)), tokens) for name in ("train", "validation", "test")}
        records.append({"step": step, "loss": 1.0, **splits, "watched": {}})
    return records


def test_the_dataset_holds_what_was_recorded_under_named_dimensions():
    records = RUN.records()
    dataset = trajectory_dataset(records, {"seed": 7}, family="binding")
    assert dataset.accuracy_by_depth.dims == ("step", "depth")
    assert dataset.accuracy_by_root_line.dims == ("step", "root_line")
    assert dataset.agreement.dims == ("step", "rule")
    assert dataset.prediction_source.dims == ("step", "source")
    for record in (records[0], records[17], records[-1]):
        at, test = dataset.sel(step=record["step"]), record["test"]
        assert float(at.split_accuracy.sel(split="test")) == test["accuracy"]
        assert at.accuracy_by_depth.values.tolist() == test["accuracy_by_depth"]
        assert float(at.agreement.sel(rule="line_2")) == test["agreement"]["line_2"]
        assert float(at.prediction_source.sel(source="none")) == test["prediction_source"][-1]
        assert float(at.follows_chain) == test["misleading"]["follows_chain"]
    assert json.loads(dataset.attrs["config"]) == {"seed": 7}


def test_every_array_says_its_unit_and_survives_netcdf(tmp_path):
    pytest.importorskip("h5py")
    dataset = trajectory_dataset(RUN.records(), family="binding")
    assert all(variable.attrs["units"] for variable in dataset.data_vars.values())
    assert (dataset.split_loss.attrs["units"], dataset.accuracy_by_depth.attrs["units"]) == ("nat", "1")
    dataset.to_netcdf(tmp_path / "trajectory.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "trajectory.nc", engine="h5netcdf") as stored:
        xr.testing.assert_identical(stored.load(), dataset)


def test_intervals_are_wilsons():
    dataset = trajectory_dataset(RUN.records(), family="binding").sel(split="test")
    low, high = wilson_interval(dataset.split_accuracy.values * 1000, 1000)
    np.testing.assert_allclose(dataset.split_accuracy_low, low)
    np.testing.assert_allclose(dataset.split_accuracy_high, high)


def test_phases_from_the_dataset_are_those_of_the_records():
    records = RUN.records()
    expected = detect_phases(curves_from_evaluations([record["step"] for record in records], records))
    assert phases_of(trajectory_dataset(records, family="binding")) == expected
    assert len(expected) == 3


def test_hops_are_learned_in_the_order_they_were_simulated():
    transitions = transitions_of(
        trajectory_dataset(SimulatedRun(masters=(600, 1200, None)).records(), family="binding")
    )
    assert list(transitions) == ["depth 1", "depth 2", "depth 3"]
    assert transitions["depth 1"] < transitions["depth 2"]
    assert transitions["depth 3"] is None


def test_a_step_measured_twice_counts_as_measured_last():
    first, second = SimulatedRun(100, seed=1).records(), SimulatedRun(100, seed=2).records()
    dataset = trajectory_dataset([*first, *reversed(second)], family="binding")
    assert dataset.step.values.tolist() == [0, 50, 100]
    xr.testing.assert_identical(dataset, trajectory_dataset(second, family="binding"))


def test_records_without_an_evaluation_are_passed_over():
    assert trajectory_dataset(
        [{"step": 10, "loss": 1.0}, *SimulatedRun(50).records()], family="binding"
    ).step.values.tolist() == [0, 50]
    with pytest.raises(BindscopeError, match="no evaluation yet"):
        trajectory_dataset([{"step": 10, "loss": 1.0}], family="binding")


def test_assign_and_add_keeps_nine_splits_and_the_two_halves():
    dataset = trajectory_dataset(sums_records(), family="assign_add")
    assert dataset.sizes["split"] == 9
    assert np.isfinite(dataset.half_accuracy.sel(split="1add")).all()
    assert np.isnan(dataset.half_accuracy.sel(split="1var")).all()
    assert [phase.name for phase in phases_of(dataset)] == ["addition", "assignment"]
    assert transitions_of(dataset)["0tr"] == 100


def test_real_labels_are_measured_in_squared_error():
    assert trajectory_dataset(templates_records(), family="templates").split_loss.attrs["units"] == "squared error"
    assert trajectory_dataset(templates_records(real=False), family="templates").split_loss.attrs["units"] == "nat"


@pytest.mark.parametrize(
    ("family", "records", "n_panels"),
    [
        pytest.param("binding", RUN.records(), 6, id="a whole run"),
        pytest.param("binding", SimulatedRun(0).records(), 6, id="one evaluation"),
        pytest.param(
            "binding", SimulatedRun(40_000, 200, 800, (14_000, 20_000, 30_000), n_examples=200).records(), 6, id="long"
        ),
        pytest.param("binding", SimulatedRun(100, n_lines=2, masters=(50,)).records(), 6, id="two lines"),
        pytest.param("binding", SimulatedRun(100, n_lines=16, masters=(50,) * 4).records(), 6, id="sixteen lines"),
        pytest.param("assign_add", sums_records(), 6, id="assign and add"),
        pytest.param("templates", templates_records(), 2, id="real templates"),
        pytest.param("templates", templates_records(real=False, steps=(0,)), 2, id="symbolic templates"),
    ],
)
def test_every_run_can_be_drawn(family, records, n_panels, tmp_path):
    dataset = trajectory_dataset(records, family=family)
    figure = figure_trajectory(dataset)
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None and axes.get_label() != "<colorbar>"]
    assert len(panels) == n_panels == len(trajectory_panels(dataset))
    path = save_figure(figure, tmp_path / "figure.svg")
    assert "training step" in path.read_text()


def test_the_accuracy_curve_drawn_is_the_one_measured():
    dataset = trajectory_dataset(RUN.records(), family="binding")
    curve = figure_trajectory(dataset).axes[0].lines[0]
    np.testing.assert_array_equal(curve.get_xdata(), dataset.step)
    np.testing.assert_array_equal(curve.get_ydata(), dataset.split_accuracy.sel(split="test"))


def test_the_same_run_gives_the_same_file(tmp_path):
    dataset = trajectory_dataset(templates_records(), family="templates")
    first, second = figure_trajectory(dataset), figure_trajectory(dataset)
    for name, figure in {"a.svg": first, "b.svg": second, "a.pdf": first, "b.pdf": second, "a.png": first}.items():
        save_figure(figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_figure_format_is_refused(tmp_path):
    figure = figure_trajectory(trajectory_dataset(templates_records(), family="templates"))
    with pytest.raises(BindscopeError, match="unknown format 'bmp'"):
        save_figure(figure, Path(tmp_path / "figure.bmp"))


def test_a_figure_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BindscopeError, match=r"figure\.svg"):
        save_figure(
            figure_trajectory(trajectory_dataset(templates_records(), family="templates")),
            tmp_path / "file" / "figure.svg",
        )


def test_long_runs_are_read_on_a_logarithmic_axis_and_short_ones_on_a_linear_one():
    short = figure_trajectory(trajectory_dataset(templates_records(), family="templates")).axes[0]
    assert short.get_xscale() == "linear"
    set_step_axis(short, np.arange(0, 105_600, 200))
    assert short.get_xscale() == "symlog"


def test_inline_svg_follows_the_theme_of_its_page():
    svg = figure_to_svg(
        figure_trajectory(trajectory_dataset(templates_records(), family="templates")), "one", 'a "quoted" <title>'
    )
    assert "var(--ink)" in svg
    assert "http" not in svg
    assert "&quot;quoted&quot; &lt;title&gt;" in svg


def test_the_colours_of_a_heat_map_are_the_same_on_every_paper():
    figure = figure_trajectory(trajectory_dataset(SimulatedRun().records(), family="binding"))
    heat_map = re.search(r'<g id="one-QuadMesh_1">.*?</g>', figure_to_svg(figure, "one", "heat"), re.DOTALL)
    assert heat_map
    assert "fill: #" in heat_map[0]
    assert "var(--" not in heat_map[0]


def test_a_loss_of_zero_is_drawn_at_the_bottom():
    records = [{**record, "test": {**record["test"], "loss": 0.0}} for record in templates_records()]
    (loss,) = [
        axes
        for axes in figure_trajectory(trajectory_dataset(records, family="templates")).axes
        if axes.get_yscale() == "log"
    ]
    assert all(np.min(line.get_ydata()) > 0 for line in loss.get_lines())


def test_the_ending_of_a_figure_may_be_in_capitals(tmp_path):
    path = save_figure(
        figure_trajectory(trajectory_dataset(templates_records(), family="templates")), tmp_path / "life.PNG"
    )
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("step", "text"), [(0, "0"), (950, "950"), (1200, "1.2k"), (105_400, "105.4k"), (2e6, "2M")])
def test_steps_are_written_short(step, text):
    assert format_step(step) == text


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.567, "57 %"), (0.9999, "99.9 %"), (0.9911, "99.1 %"), (1.0, "100 %"), (0.0, "0 %")]
)
def test_a_fraction_is_never_rounded_up_to_perfection(fraction, text):
    assert format_fraction(fraction) == text
