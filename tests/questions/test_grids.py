"""A series of patch grids: the numbers of the grids themselves, whole files only, and one checkpoint in memory at a time."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.outcome import summarise_outcomes
from bindscope.measures.binding import pair_grids
from bindscope.measures.binding.patching import Patch, patch_steps
from bindscope.questions import grids
from bindscope.questions.grids import N_BITS, Grids, GridSeries, read_question
from bindscope.questions.opened import Opened
from bindscope.runs.directory import Run
from bindscope.runs.lock import LOCK_FILE, hold_file
from bindscope.runs.series import Unusable, list_series
from ray_cluster import start_cluster
from studies.made_runs import make_run

STEPS = (0, 500, 1450, 2000)
ROUNDED = 2.0**-N_BITS


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return Opened.of(make_run(tmp_path_factory.mktemp("made") / "run", steps=STEPS))


@pytest.fixture(scope="module")
def results(opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with a whole series."""
    folder = tmp_path_factory.mktemp("results")
    ask().answer(opened, [folder], jobs=1)
    return folder


def ask(**others: Any) -> Grids:
    return Grids(**{"run": "made", "n": 10, **others})


def contents(found: GridSeries) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in found.series.folder.glob("*") if path.name != LOCK_FILE}


@pytest.mark.parametrize("grid", ["residual", "chain", "heads"])
@pytest.mark.parametrize("direction", ["noising", "denoising"])
def test_a_series_has_the_numbers_of_the_grids(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grid: Any, direction: Any
) -> None:
    monkeypatch.setattr(pair_grids, "PAIRS_AT_ONCE", 4)
    question = ask(grid=grid, direction=direction, metric="kl", steps=(500, 2000))
    found = question.answer(opened, [tmp_path], jobs=1)
    pairs = question.draw(opened.task).pairs
    whole = patch_steps(opened.load, (500, 2000), pairs, Patch(grid, direction=direction))[["success", "kl"]]
    for step in (500, 2000):
        kept, expected = found.pairs(step), whole.sel(step=step).transpose("pair", ...)
        np.testing.assert_array_equal(kept.pair_success, expected.success)
        np.testing.assert_allclose(kept.pair_kl, expected.kl, rtol=ROUNDED, atol=1e-6)
        means = summarise_outcomes(whole.sel(step=step, drop=True), np.random.default_rng([question.seed, 1]))
        told = found.summary([step]).isel(step=0, drop=True)
        xr.testing.assert_allclose(told.drop_attrs(), means[list(told.data_vars)].drop_attrs(), atol=1e-5)


def test_one_pair_is_what_all_pairs_say_of_it(opened: Opened, results: Path) -> None:
    found = ask().find(opened, [results])
    assert found.steps == STEPS
    xr.testing.assert_identical(found.pairs(1450, pair=7), found.pairs(1450).isel(pair=7))
    with pytest.raises(BindscopeError, match="pairs 0 to 9"):
        found.pairs(1450, pair=10)


def test_a_kill_between_files_leaves_whole_files_and_the_rest_comes_out_the_same(
    opened: Opened, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = grids.write_step, []

    def write_two(found: GridSeries, step: int) -> Path:
        if len(written) == 2:
            (found.series.folder / ".writing-half").write_bytes(b"half a file")
            raise KeyboardInterrupt
        written.append(step)
        return write(found, step)

    monkeypatch.setattr(grids, "write_step", write_two)
    with pytest.raises(KeyboardInterrupt):
        ask().answer(opened, [tmp_path], jobs=1)
    monkeypatch.setattr(grids, "write_step", write)
    assert ask().find(opened, [tmp_path]).steps == (0, 500)  # readable as far as it is
    assert ask().find(opened, [tmp_path]).summary().sizes["step"] == 2
    found = ask().answer(opened, [tmp_path], jobs=1)
    assert found.measured == (1450, 2000)
    assert not found.notes
    assert contents(found) == contents(ask().find(opened, [results]))


def test_several_processes_write_the_same_bytes(opened: Opened, results: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    found = ask().answer(opened, [tmp_path], jobs=2, on_progress=lambda done, total: told.append((done, total)))
    assert contents(found) == contents(ask().find(opened, [results]))
    assert told[-1] == (len(STEPS), len(STEPS))


def test_a_cluster_writes_the_same_bytes(opened: Opened, results: Path, tmp_path: Path) -> None:
    with start_cluster() as address:
        found = ask().answer(opened, [tmp_path], cluster=address)
    assert found.measured == STEPS
    assert contents(found) == contents(ask().find(opened, [results]))


def test_without_ray_nothing_is_begun(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BindscopeError, match="--cluster: Ray is not installed here"):
        ask().answer(opened, [tmp_path], cluster="auto")
    assert ask().find(opened, [tmp_path]).steps == ()


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_damaged_file_is_named_and_measured_again(opened: Opened, results: Path, tmp_path: Path, at: float) -> None:
    found = ask(steps=(0, 500)).answer(opened, [tmp_path], jobs=1)
    path = found.series.path(500)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * at)])
    again = ask(steps=(0, 500)).answer(opened, [tmp_path], jobs=1)
    assert again.measured == (500,)
    assert str(path) in again.notes[0]
    assert "damaged" in again.notes[0]
    assert path.read_bytes() == whole


def test_a_changed_byte_among_the_pairs_is_found_whatever_is_read(opened: Opened, tmp_path: Path) -> None:
    found = ask(steps=2000).answer(opened, [tmp_path], jobs=1)
    path = found.series.path(2000)
    content = bytearray(path.read_bytes())
    content[_last_chunk(path, "pair_logit_difference")] ^= 1
    path.write_bytes(content)
    for read in (found.summary, lambda: found.pairs(2000, pair=0), lambda: found.pairs(2000, pair=9)):
        with pytest.raises(Unusable, match=r"step_00002000\.nc: this result is damaged"):
            read()
    assert ask(steps=2000).answer(opened, [tmp_path], jobs=1).measured == (2000,)


def test_numbers_of_other_weights_are_not_used(opened: Opened, tmp_path: Path) -> None:
    other = Opened.of(make_run(tmp_path / "other", steps=(0,)))
    ask(steps=0).answer(other, [tmp_path], jobs=1)
    path = ask().find(other, [tmp_path]).series.path(0)
    path.rename(path.with_name("step_00002000.nc"))
    found = ask().find(opened, [tmp_path])
    with pytest.raises(Unusable, match="made from other weights"):
        found.pairs(2000)
    again = ask(steps=2000).answer(opened, [tmp_path], jobs=1)
    assert again.measured == (2000,)
    assert "made from other weights" in again.notes[0]


def test_memory_holds_one_checkpoint_and_some_pairs_however_many_there_are(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure, patch = pair_grids.measure_pair_grid, pair_grids.patch_model
    alive: list[weakref.ref[Any]] = []
    n_alive: list[int] = []
    n_pairs: list[int] = []

    def measure_one(*given: Any) -> xr.Dataset:
        gc.collect()
        n_alive.append(sum(array() is not None for array in alive))
        dataset = measure(*given)
        alive.extend(weakref.ref(dataset[name].values) for name in ("pair_success", "pair_logit_difference"))
        assert alive[-1]() is not None
        return dataset

    def patch_some(model: Any, pairs: Any, *others: Any) -> xr.Dataset:
        n_pairs.append(len(pairs))
        return patch(model, pairs, *others)

    monkeypatch.setattr(pair_grids, "measure_pair_grid", measure_one)
    monkeypatch.setattr(pair_grids, "patch_model", patch_some)
    monkeypatch.setattr(pair_grids, "PAIRS_AT_ONCE", 4)
    ask().answer(opened, [tmp_path], jobs=1)
    assert n_alive == [0] * len(STEPS)  # whatever was measured of earlier checkpoints is gone
    assert n_pairs == [4, 4, 2] * len(STEPS)


def test_two_commands_do_not_write_one_series(opened: Opened, results: Path) -> None:
    with hold_file(ask().find(opened, [results]).series.folder / LOCK_FILE) as free:
        assert free
        with pytest.raises(BindscopeError, match="another process is measuring this"):
            ask().answer(opened, [results], jobs=1)


def test_a_series_says_what_was_asked(opened: Opened, results: Path) -> None:
    (name,) = list_series([results])
    assert name == ask().name == "residual-n10-seed0"
    assert read_question("made", list_series([results])[name]) == ask()
    names = {ask(**{key: value}).name for key, value in {"n": 11, "seed": 1, "depth": 1, "first_root_line": 1}.items()}
    names |= {ask(metric="kl").name, ask(direction="denoising").name, ask(grid="heads").name, ask().name}
    assert len(names) == 8


def test_a_shipped_series_is_read_and_what_is_missing_is_written_elsewhere(
    opened: Opened, results: Path, tmp_path: Path
) -> None:
    (results / "grid-series" / ask().name / "step_00000500.nc").rename(tmp_path / "aside.nc")
    try:
        found = ask().answer(opened, [tmp_path, results], jobs=1)
        assert found.measured == (500,)
        assert found.steps == STEPS
        assert [path.name for path in (tmp_path / "grid-series" / ask().name).glob("*.nc")] == ["step_00000500.nc"]
    finally:
        (tmp_path / "aside.nc").rename(results / "grid-series" / ask().name / "step_00000500.nc")


def test_a_run_without_programs_is_refused(tmp_path: Path) -> None:
    sums = Opened.of(Run.open(Path(grids.__file__).parents[1] / "shipped" / "assign-add"))
    with pytest.raises(BindscopeError, match="its task is assign_add"):
        ask().answer(sums, [tmp_path])


def _last_chunk(path: Path, name: str) -> int:
    """Where in the file the last stored chunk of a variable begins."""
    import h5py

    with h5py.File(path) as file:
        stored = file[name].id
        return int(stored.get_chunk_info(stored.get_num_chunks() - 1).byte_offset)
