from __future__ import annotations

import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.training.device import select_device, use_threads


def test_auto_takes_what_is_there():
    assert select_device("auto").type in ("cpu", "cuda", "mps")
    assert select_device("cpu") == torch.device("cpu")


def test_a_device_that_is_absent_is_named_with_what_is_usable(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(BindscopeError, match=r"no cuda; usable here: cpu"):
        select_device("cuda")


def test_an_unknown_device_suggests_the_nearest():
    with pytest.raises(BindscopeError, match=r"unknown device 'cudo'. Did you mean 'cuda'\?"):
        select_device("cudo")


def test_each_process_has_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert select_device("cuda", local_rank=1) == torch.device("cuda", 1)
    with pytest.raises(BindscopeError, match="this machine has 2"):
        select_device("cuda", local_rank=2)


def test_threads_are_set_inside_the_block_only():
    before = torch.get_num_threads()
    with use_threads(2) as n_threads:
        assert n_threads == torch.get_num_threads() == 2
    assert torch.get_num_threads() == before
    with pytest.raises(BindscopeError, match="threads: must be at least 1"), use_threads(0):
        pass
