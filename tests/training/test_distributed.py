from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.training.distributed import Processes, detect_processes, join_processes
from bindscope.training.loss import batch_loss
from torchrun import run_by_torchrun

WORKER = Path(__file__).with_name("train_by_torchrun.py")


def test_torchruns_environment_is_read_and_a_process_alone_is_the_first():
    assert detect_processes({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}) == Processes(3, 1, 4)
    assert detect_processes({}) == Processes()
    named = {"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "a", "TORCHELASTIC_RESTART_COUNT": "3"}
    assert detect_processes(named) == Processes(1, 1, 2, launch="a", attempt=3)
    assert detect_processes(named | {"TORCHELASTIC_RUN_ID": "none"}).launch == ""
    assert Processes().is_first
    assert not Processes(rank=1, n=2).is_first


@pytest.mark.parametrize(("n_rows", "n_processes"), [(8, 2), (7, 2), (7, 3), (2, 3)])
@pytest.mark.parametrize("loss", ["answer", "all"])
def test_the_average_of_the_shards_gradients_is_the_gradient_of_the_batch(make_model, task, n_rows, n_processes, loss):
    model = make_model().double()
    batch = task.sample_batch(np.random.default_rng(0), n_rows)
    whole = batch_loss(model, batch, loss)
    expected = torch.autograd.grad(whole, list(model.parameters()))
    losses, gradients = [], [torch.zeros_like(p) for p in model.parameters()]
    for rank in range(n_processes):
        part, fraction = Processes(rank, rank, n_processes).shard(batch)
        shard_loss = batch_loss(model, part, loss) * fraction
        losses.append(shard_loss.item())
        for total, gradient in zip(gradients, torch.autograd.grad(shard_loss, list(model.parameters()))):
            total += gradient / n_processes
    assert np.mean(losses) == pytest.approx(whole.item(), abs=1e-12)
    for total, gradient in zip(gradients, expected):
        torch.testing.assert_close(total, gradient, rtol=0, atol=1e-12)


def test_several_processes_cannot_share_an_apple_gpu():
    processes = Processes(0, 0, 2)
    with (
        pytest.raises(BindscopeError, match="mps trains with one process"),
        join_processes(processes, torch.device("mps")),
    ):
        pass


def test_processes_that_never_come_are_waited_for_so_long_and_no_longer(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        BindscopeError, match=rf"2 processes .* did not connect within 1 s by way of 127\.0\.0\.1:{port}"
    ):
        join_processes(Processes(0, 0, 2), torch.device("cpu"), seconds=1)
    assert not torch.distributed.is_initialized()


def test_an_environment_that_names_no_meeting_point_is_refused_too(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(BindscopeError, match=r"did not connect .* \(.*MASTER_ADDR expected"):
        join_processes(Processes(0, 0, 2), torch.device("cpu"), seconds=1)


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_two_processes_train_the_same_weights_as_one(tmp_path):
    """Seven rows a step, so that the two shards differ in size; with evaluation and an early stop that both obey."""
    alone, together = tmp_path / "alone", tmp_path / "together"
    alone.mkdir()
    together.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, str(WORKER), str(alone)], env=environment, check=True, timeout=600)
    run_by_torchrun(WORKER, [str(together)])
    one, two = (json.loads((directory / "record.json").read_text()) for directory in (alone, together))
    assert one["steps"] == two["steps"] == [0, 4, 8]
    assert np.array(one["losses"][1:]) == pytest.approx(np.array(two["losses"][1:]), abs=1e-9)
    first, second = (torch.load(directory / "weights.pt", weights_only=True) for directory in (alone, together))
    for name, value in first.items():
        torch.testing.assert_close(value, second[name], rtol=0, atol=1e-9, msg=name)
    other = torch.load(together / "weights_of_rank_1.pt", weights_only=True)
    for name, value in second.items():
        assert torch.equal(value, other[name]), name
