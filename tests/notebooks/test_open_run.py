"""What ``open_run`` gives equals the functions it wraps, draws itself, and costs nothing until it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import bindscope
from bindscope.errors import BindscopeError
from bindscope.measures.binding.patching import Patch, patch_steps
from bindscope.measures.evaluation import read_answers
from bindscope.measures.lens_map import map_lens
from bindscope.model.run import run as run_model
from bindscope.notebook import Drawn, RunView
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
from bindscope.tasks.binding import ask_programs, pair_programs, parse_program

PROGRAM, OTHER = "c=1;d=2;a=5;b=a;#b:", "c=1;d=2;a=8;b=a;#b:"


@pytest.fixture(scope="module")
def view() -> RunView:
    return bindscope.open_run("binding-laptop")


@pytest.fixture(scope="module")
def run() -> Run:
    return Run.open(find_run("binding-laptop"))


def program(text: str = PROGRAM):
    return parse_program(text.replace(";", "\n"))


def same(drawn: Drawn, dataset: xr.Dataset) -> None:
    """Equal in names, values and labels; what was added are attributes."""
    assert isinstance(drawn, Drawn)
    xr.testing.assert_equal(xr.Dataset(drawn.data_vars, drawn.coords), dataset)
    assert dataset.attrs.items() <= drawn.attrs.items()


def test_importing_bindscope_imports_nothing_heavy() -> None:
    question = "import sys, bindscope; print([name for name in ('torch', 'numpy', 'xarray') if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
    assert "open_run" in dir(bindscope)
    with pytest.raises(AttributeError, match="no attribute 'close_run'"):
        _ = bindscope.close_run


def test_the_trajectory_is_that_of_the_study(view: RunView, run: Run) -> None:
    dataset = trajectory_dataset(run.metrics, run.manifest.config)
    same(view.trajectory(), dataset)
    phases = view.phases()
    assert list(phases.phase.values) == [phase.name for phase in phases_of(dataset)]
    assert phases.last_step.values.tolist() == [phase.last_step for phase in phases_of(dataset)]


def test_a_prediction_is_the_softmax_of_the_answers(view: RunView, run: Run) -> None:
    steps = [run.steps[3], run.steps[-1]]
    found = view.predict(PROGRAM, steps)
    assert found.probability.dims == ("step", "output")
    for step in steps:
        logits = read_answers(run.checkpoint(step), ask_programs([program()]))[0].astype(float)
        expected = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(found.probability.sel(step=step), expected, atol=1e-6)
    assert str(found.output.values[found.probability.values[-1].argmax()]) == found.attrs["answer"] == "5"


def test_the_lens_and_attention_are_those_of_the_model(view: RunView, run: Run) -> None:
    import torch

    same(view.lens(PROGRAM), map_lens(run.checkpoint("last"), program()))
    pattern = view.attention(PROGRAM).pattern
    tokens = torch.from_numpy(ask_programs([program()]).tokens)
    direct = run_model(run.checkpoint("last"), tokens, read=["L2.pattern"])["L2.pattern"][0]
    np.testing.assert_allclose(pattern.sel(layer=2), direct.detach().numpy(), atol=1e-6)


def test_a_patch_is_the_study_s(view: RunView, run: Run) -> None:
    pairs = pair_programs(program(), program(OTHER))
    expected = patch_steps(run.checkpoint, [run.steps[-1]], pairs, Patch("heads"))
    same(view.patch(PROGRAM, OTHER, grid="heads"), expected)
    sites = ("L0.resid_pre",)
    together = view.patch(PROGRAM, OTHER, sites=sites, steps=[run.steps[0], run.steps[-1]], direction="denoising")
    assert together.success.dims == ("step", "pair")
    assert together.success.values[-1] == 1  # the whole residual stream at the bottom is the other program


def test_drawn_pairs_need_no_program(view: RunView) -> None:
    assert view.patch(grid="mlps", n=4, seed=3).sizes["pair"] == 4


def test_results_are_those_kept_with_the_run(view: RunView, run: Run) -> None:
    same(view.result("chain"), run.result("chain"))
    with pytest.raises(BindscopeError, match="no result 'chains'"):
        view.result("chains")


def test_everything_draws_itself(view: RunView) -> None:
    drawn = [view.trajectory(), view.phases(), view.predict(PROGRAM), view.predict(PROGRAM, "all"), view.lens(PROGRAM)]
    drawn += [view.attention(PROGRAM), view.patch(PROGRAM, OTHER), view.result("subspaces"), view.result("hops")]
    for dataset in drawn:
        figure = dataset.plot()
        assert isinstance(figure, Figure)
        assert figure.axes
    assert isinstance(view.patch(PROGRAM, OTHER).plot(metric="kl"), Figure)
    with pytest.raises(BindscopeError, match="no metric 'loss'"):
        view.patch(PROGRAM, OTHER).plot(metric="loss")


def test_a_selection_and_a_file_still_draw(view: RunView, tmp_path: Path) -> None:
    early = view.trajectory().sel(step=slice(0, 1000))
    assert isinstance(early, Drawn)
    assert isinstance(early.plot(), Figure)
    early.to_netcdf(tmp_path / "early.nc", engine="h5netcdf")
    again = xr.load_dataset(tmp_path / "early.nc", engine="h5netcdf")
    assert isinstance(Drawn.of(again, again.attrs["figure"]).plot(), Figure)
    assert callable(early.plot.scatter)  # xarray's own plots are still there
    with pytest.raises(BindscopeError, match="names no figure"):
        Drawn(early.data_vars, early.coords).plot()


def test_a_result_shows_itself_in_a_cell_as_the_page_does(view: RunView, tmp_path: Path) -> None:
    patched = view.patch(PROGRAM, OTHER)
    cell = patched._repr_html_()
    best = patched.success.isel(step=-1, pair=0)
    layer, position = np.unravel_index(int(best.values.argmax()), best.shape)
    assert f"Most is done at layer {layer}, position {position}: 100 %" in cell
    assert "binding-laptop · step 3,700 · n = 1" in cell
    assert cell.count('class="bindscope-reading"') == best.size
    assert not re.search(r"<script|src=|@import|href=\"http", cell)
    saved = patched.panel(metric="kl").save(tmp_path / "sub" / "patch.html").read_text()
    assert saved.startswith("<!doctype html>")
    assert "KL" in saved


def test_findings_are_made_of_the_numbers(view: RunView) -> None:
    answers = view.predict(PROGRAM, steps="all")
    probability = answers.probability.sel(output="5")
    since = int(answers.step[np.flatnonzero(probability <= 0.5)[-1] + 1])
    assert answers.panel().finding.endswith(f"which is right; 5 stays above a half from step {since:,}.")
    assert view.trajectory().panel().finding == view.phases().panel().finding
    assert view.predict("c=1;d=2;a=5;b=a;#d:", steps=0).panel().finding.startswith("At step 0 the model says")
    swapped = view.swap(PROGRAM, OTHER, of="values")
    said = str(swapped.output.values[int(swapped.probability.isel(condition=-1).values.argmax())])
    assert swapped.panel().finding.startswith(f"After the swap the model says {said} (")
    lens = view.lens(PROGRAM).isel(position=-1)
    after = int(np.flatnonzero(lens.answer_logit <= lens.line_1_logit)[-1]) + 1
    assert view.lens(PROGRAM).panel().finding.endswith(f"for good after {after} layers.")


def test_what_no_figure_can_draw_is_shown_as_any_other_dataset(view: RunView) -> None:
    part = view.trajectory().isel(step=0, drop=True)
    assert "xr-wrap" in part._repr_html_()
    with pytest.raises(BindscopeError, match="names no figure"):
        Drawn(part.data_vars).panel()


def test_verdicts_are_a_table_with_figures(view: RunView, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verdicts = view.verify(["VB4", "vb6"])
    assert verdicts.dataset.claim.values.tolist() == ["VB4", "VB6"]
    assert set(verdicts.dataset.verdict.values) <= {"replicates", "differs", "not testable"}
    assert isinstance(verdicts.plot("vb4"), Figure)
    assert verdicts.dataset.title.values[0] in verdicts._repr_html_()
    panel = verdicts.panel("vb4")
    assert panel.finding.startswith(str(verdicts.dataset.verdict.values[0]))
    assert panel.title.startswith("VB4: ")
    with pytest.raises(BindscopeError, match="no claim 'VB1' here"):
        verdicts.plot("VB1")
    with pytest.raises(BindscopeError, match="name the claim"):
        verdicts.panel()
    assert not list(tmp_path.iterdir())  # everything was saved with the shipped run


def test_a_run_shows_what_it_is(view: RunView) -> None:
    page = view._repr_html_()
    assert "5 layers of 4 heads" in page
    assert "systematic phase" in page
    assert repr(view) == "<run binding-laptop: binding, 26 checkpoints>"


def test_mistakes_are_told_in_a_sentence(view: RunView) -> None:
    with pytest.raises(BindscopeError, match="no run 'binding-laptob'"):
        bindscope.open_run("binding-laptob")
    with pytest.raises(BindscopeError, match="line 1"):
        view.predict("b=a;#b:")
    with pytest.raises(BindscopeError, match="one program was given"):
        view.patch(PROGRAM)
    with pytest.raises(BindscopeError, match="step 12345 was not saved"):
        view.lens(PROGRAM, 12345)


def test_what_a_command_asks_a_notebook_asks_too(view: RunView, run: Run) -> None:
    answers = view.ablate(PROGRAM, sites=["L2.H1"], kind="zero")
    assert answers.probability.dims == ("condition", "output")
    assert view.ablate(sites=["L2.H1"], n=8).sizes == {"example": 8}
    path = view.path(PROGRAM, OTHER, sender="L1.H0", receivers=["L3.H1.k", "logits"])
    assert path.success.dims == ("receiver", "pair")
    drawn = view.sample(depth=2, n_lines=5)
    assert (int(drawn.depth[0]), int(drawn.n_lines[0])) == (2, 5)
    assert "Give it once per site" in (view.patch.__doc__ or "")
    with pytest.raises(BindscopeError, match="both programs have the answer 5"):
        view.patch(PROGRAM, "c=1;d=2;a=5;e=a;#e:")
