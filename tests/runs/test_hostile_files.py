"""Files that say they hold more than they do, or what is not theirs: refused before memory is taken or a file is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import pytest

from bindscope.errors import BindscopeError
from bindscope.runs import results
from bindscope.runs.check import check_run
from bindscope.runs.directory import Run
from bindscope.runs.results import read_result

OLD_RUN = Path(__file__).parent / "formats" / "format-1"  # its manifest has no hash: any change is read


def test_a_small_file_that_says_it_holds_terabytes_is_refused(tmp_path: Path) -> None:
    for name, shape, chunks in (("flat", (10**12,), (10**6,)), ("deep", (10**6, 10**6), (100, 100))):
        with h5py.File(tmp_path / f"{name}.nc", "w") as file:
            file.create_dataset("x", shape, "f4", chunks=chunks, compression="gzip")
        assert (tmp_path / f"{name}.nc").stat().st_size < 10_000
        with pytest.raises(BindscopeError, match=r"2,000,000,000 .*at most"):
            read_result(tmp_path / f"{name}.nc")


def test_one_chunk_cannot_be_larger_than_what_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "chunk.nc", "w") as file:
        file.create_dataset("x", (100, 100), "f4", chunks=(100, 100), compression="gzip")
    read_result(tmp_path / "chunk.nc")
    monkeypatch.setattr(results, "MOST_BYTES", 39_999)
    with pytest.raises(BindscopeError, match="39,999 bytes are read at most"):
        results.read_part(tmp_path / "chunk.nc", None, {"phony_dim_0": 0})


def test_a_dataset_takes_nothing_from_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"0123456789")
    with h5py.File(tmp_path / "stored.nc", "w") as file:
        file.create_dataset("x", (10,), "u1", external=[(str(tmp_path / "secret"), 0, 10)])
    with h5py.File(tmp_path / "linked.nc", "w") as file:
        file["x"] = h5py.ExternalLink(str(tmp_path / "stored.nc"), "/x")
    for name in ("stored", "linked"):
        with pytest.raises(BindscopeError, match="'x' is not an array of its own"):
            read_result(tmp_path / f"{name}.nc")


@pytest.mark.parametrize("setting", ["d_model", "n_layers", "d_mlp", "d_vocab"])
def test_a_run_that_says_its_model_is_giant_is_refused_by_the_size_of_its_weights(setting: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(OLD_RUN, path)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["config"]["model"][setting] = 10_000 if setting == "n_layers" else 99_999_998
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BindscopeError, match=r"it holds .* numbers, and one of this shape has|model"):
        Run.open(path).checkpoint("last")
    assert check_run(path).damaged
