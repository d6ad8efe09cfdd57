from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import safetensors.torch
import torch
import xarray

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert import load_into
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run, list_runs
from bindscope.runs.execute import resume_run
from bindscope.runs.lock import hold_lock, is_locked
from bindscope.runs.manifest import read_manifest
from rewriting import replace_in_manifest


def test_anyone_can_read_a_run_without_us(run):
    manifest = json.loads((run.path / "manifest.json").read_text())
    assert manifest["config"]["task"]["family"] == "binding"
    assert manifest["versions"].keys() == {"bindscope", "python", "torch", "numpy", "safetensors"}
    assert manifest["machine"]["threads"] == 1
    assert manifest["status"] == "finished"
    tensors = safetensors.torch.load_file(run.path / "checkpoints" / "step_00000012.safetensors")
    assert tensors["embed.weight"].shape == (40, 16)
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 4, 8, 12]
    assert str(run.path.parent) not in (run.path / "manifest.json").read_text()


def test_a_manifest_is_read_back_as_it_was_written(run):
    assert read_manifest(run.path / "manifest.json") == run.manifest
    assert run.manifest.to_json() == (run.path / "manifest.json").read_bytes()


def test_checkpoints_are_found_by_number_name_and_nearness(run):
    assert run.steps == (0, 1, 2, 4, 8, 12)
    assert run.find_step("last") == 12
    assert run.find_step("first") == 0
    assert run.find_step("8") == 8
    assert [run.nearest_step(step) for step in (3, 5, 7, 100)] == [2, 4, 8, 12]
    with pytest.raises(BindscopeError, match=r"step 7 was not saved; the nearest is 8"):
        run.checkpoint(7)
    with pytest.raises(BindscopeError, match=r"step 'lats': give a number, 'first' or 'last'"):
        run.checkpoint("lats")


def test_a_checkpoint_is_the_model_it_was(run, config):
    untrained = Transformer(config.model, torch.Generator().manual_seed(config.seeds["model"]))
    first = run.checkpoint("first")
    assert not first.training
    for name, value in untrained.state_dict().items():
        assert torch.equal(value, first.state_dict()[name]), name
    assert not torch.equal(run.checkpoint(12).embed.weight, first.embed.weight)


def damage(path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_one_changed_bit_in_a_checkpoint_is_noticed_and_the_others_still_load(run):
    damage(run.path / "checkpoints" / "step_00000004.safetensors")
    with pytest.raises(BindscopeError, match=r"step_00000004.safetensors: this checkpoint is damaged"):
        run.checkpoint(4)
    run.checkpoint(8)


def test_a_missing_checkpoint_is_named_and_a_foreign_one_is_not_used(run):
    folder = run.path / "checkpoints"
    shutil.copy(folder / "step_00000004.safetensors", folder / "step_00000005.safetensors")
    (folder / "step_00000004.safetensors").unlink()
    reopened = Run.open(run.path)
    assert 5 not in reopened.steps
    with pytest.raises(BindscopeError, match=r"step_00000004.safetensors: this checkpoint is missing"):
        reopened.checkpoint(4)


def test_a_checkpoint_of_another_shape_says_what_differs(run):
    def load(**changes):
        shape = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 8, "d_mlp": 32} | changes
        load_into(Transformer(ModelConfig(40, 15, **shape)), run.weights(), "x.safetensors")

    load()
    with pytest.raises(
        BindscopeError, match=r"of another model: its 'blocks.0.mlp.up.weight' has shape \[32, 16\], this"
    ):
        load(d_mlp=64)
    with pytest.raises(BindscopeError, match=r"of another model: it has no 'blocks.2"):
        load(n_layers=3)
    with pytest.raises(BindscopeError, match=r"of another model: this model has no 'blocks.1"):
        load(n_layers=1)


def test_what_is_not_a_run_is_said_to_be_none(run, tmp_path):
    with pytest.raises(BindscopeError, match=r"tinny: no such run. Did you mean 'tiny'\?"):
        Run.open(tmp_path / "tinny")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BindscopeError, match=r"folder: not a run: it has no manifest.json"):
        Run.open(tmp_path / "folder")
    with pytest.raises(BindscopeError, match="not a run"):
        Run.open(run.path / "metrics.jsonl")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: content[: len(content) // 2], "the manifest is damaged: it is not valid JSON"),
        (lambda content: b"[]", "not the manifest of a run"),
        (lambda content: content.replace(b'"format": 2', b'"format": 9'), "written in format 9"),
        (lambda content: content.replace(b'"format": 2', b'"format": 1'), "not what was recorded"),
        (lambda content: content.replace(b'"total_steps": 12', b'"total_steps": 13'), "not what was recorded"),
    ],
)
def test_a_damaged_manifest_is_named(run, change, sentence):
    path = run.path / "manifest.json"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BindscopeError, match=sentence) as caught:
        Run.open(run.path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"status"', '"statsu"', r"unknown key 'statsu'. Did you mean 'status'"),
        ('"step_00000004', '"../step_00000004', "is no name of a checkpoint"),
    ],
)
def test_a_manifest_that_says_what_none_can_say_is_refused(run, old, new, sentence):
    replace_in_manifest(run.path, old, new)
    with pytest.raises(BindscopeError, match=sentence) as caught:
        Run.open(run.path)
    assert str(run.path / "manifest.json") in str(caught.value)


def test_a_config_from_a_later_version_names_the_setting_it_cannot_read(run):
    replace_in_manifest(run.path, '"n_heads": 2', '"n_headz": 2')
    with pytest.raises(BindscopeError, match=r"manifest.json: config.model: unknown key 'n_headz'"):
        _ = Run.open(run.path).config


def test_listing_runs_names_the_damaged_and_passes_over_other_folders(run, tmp_path):
    (tmp_path / "notes").mkdir()
    broken = shutil.copytree(run.path, tmp_path / "broken")
    (broken / "manifest.json").write_text("{")
    runs, problems = list_runs(tmp_path)
    assert [found.path.name for found in runs] == ["tiny"]
    assert len(problems) == 1
    assert "broken" in problems[0]
    assert list_runs(tmp_path / "nowhere") == ([], [])


def test_only_the_latest_state_takes_up_space(half_done, run):
    assert sorted(path.name for path in (half_done.path / "optimizer").iterdir()) == [
        "latest.json",
        "step_00000006.safetensors",
    ]
    assert len(list((run.path / "optimizer").iterdir())) == 2


@pytest.mark.parametrize("file", ["latest.json", "step_00000006.safetensors"])
@pytest.mark.parametrize("harm", [damage, lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_run_whose_state_is_harmed_is_not_resumed_and_not_changed(half_done, file, harm):
    assert half_done.status == "interrupted"
    harm(half_done.path / "optimizer" / file)
    before = snapshot(half_done.path)
    with pytest.raises(BindscopeError, match=r"optimizer/.*the state to resume from is (damaged|missing)"):
        resume_run(half_done.path)
    assert snapshot(half_done.path) == before


def snapshot(path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}


def test_two_processes_cannot_train_the_same_run(half_done):
    with hold_lock(half_done.path):
        assert is_locked(half_done.path)
        assert half_done.status == "training"
        with pytest.raises(BindscopeError, match="another process is training this run"):
            resume_run(half_done.path)
    assert not is_locked(half_done.path)


def test_runs_can_be_read_on_a_system_without_fcntl():
    program = "import sys; sys.modules['fcntl'] = None; import bindscope.runs.directory, bindscope.runs.lock"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_a_killed_process_leaves_no_lock(half_done):
    program = (
        "import sys, time; from pathlib import Path; from bindscope.runs.lock import hold_lock\n"
        "with hold_lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, half_done.path], stdout=subprocess.PIPE, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert holder.stdout.readline() == b"held\n"
    assert is_locked(half_done.path)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert not is_locked(half_done.path)


def test_results_are_labelled_arrays_that_come_back(run):
    pytest.importorskip("h5py")
    result = xarray.Dataset({"accuracy": (("step", "depth"), np.eye(3))}, {"step": [0, 4, 8]}, {"unit": "fraction"})
    run.save_result("by_depth", result)
    assert run.result_names == ("by_depth",)
    xarray.testing.assert_identical(run.result("by_depth"), result)
    with pytest.raises(BindscopeError, match=r"no result 'by_depht'. Did you mean 'by_depth'\?"):
        run.result("by_depht")
    with pytest.raises(BindscopeError, match="without slashes"):
        run.save_result("../elsewhere", result)
    (run.path / "results" / "by_depth.nc").write_bytes(b"nothing")
    with pytest.raises(BindscopeError, match=r"by_depth.nc: this result is damaged"):
        run.result("by_depth")
