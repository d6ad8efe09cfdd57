from __future__ import annotations

import copy

import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.training.config import OptimizerConfig
from bindscope.training.loss import batch_loss
from bindscope.training.muon import Muon, orthogonalise
from bindscope.training.optimizer import build_optimizer, is_hidden_matrix

CONFIGS = [OptimizerConfig("adamw", lr=1e-2), OptimizerConfig("muon", lr=1e-2, muon_lr=0.02)]


def take_steps(model, optimizer, stream, steps) -> None:
    for step in steps:
        optimizer.zero_grad()
        batch_loss(model, stream.batch(step)).backward()
        optimizer.step()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_a_saved_state_continues_bit_for_bit(make_model, stream, config):
    whole, first = make_model(), make_model()
    take_steps(whole, build_optimizer(whole, config), stream, range(5))
    optimizer = build_optimizer(first, config)
    take_steps(first, optimizer, stream, range(3))
    saved = optimizer.state_dict()
    take_steps(first, optimizer, stream, [0])  # going on must not change what was saved

    second = make_model(seed=7)
    halfway = make_model()
    take_steps(halfway, build_optimizer(halfway, config), stream, range(3))
    second.load_state_dict(halfway.state_dict())
    continued = build_optimizer(second, config)
    continued.load_state_dict(saved)
    take_steps(second, continued, stream, range(3, 5))
    for name, value in whole.state_dict().items():
        assert torch.equal(value, second.state_dict()[name]), name


def test_adamw_is_torchs_adamw(make_model, stream):
    ours, theirs = make_model(), make_model()
    config = OptimizerConfig("adamw", lr=3e-3, betas=(0.95, 0.99), weight_decay=0.1)
    reference = torch.optim.AdamW(theirs.parameters(), lr=3e-3, betas=(0.95, 0.99), weight_decay=0.1, foreach=False)
    take_steps(ours, build_optimizer(ours, config), stream, range(4))
    take_steps(theirs, reference, stream, range(4))
    for a, b in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_muon_takes_the_matrices_inside_the_blocks_and_adamw_all_the_rest(make_model):
    model = make_model(positions="learned")
    optimizer = build_optimizer(model, OptimizerConfig("muon"))
    adamw, muon = ([id(p) for group in member.param_groups for p in group["params"]] for member in optimizer.members)
    assert not set(adamw) & set(muon)
    assert set(adamw) | set(muon) == {id(p) for p in model.parameters()}
    names = {name for name, p in model.named_parameters() if id(p) in muon}
    assert names == {
        f"blocks.{layer}.{part}.weight"
        for layer in range(2)
        for part in ("attention.qkv", "attention.out", "mlp.up", "mlp.down")
    }
    assert not is_hidden_matrix("embed.weight", model.embed.weight)


def test_rates_scale_from_their_base_every_time(make_model):
    optimizer = build_optimizer(make_model(), OptimizerConfig("muon", lr=1e-2, muon_lr=0.5))
    for factor in (0.5, 0.25):
        optimizer.scale_rates(factor)
        assert [member.param_groups[0]["lr"] for member in optimizer.members] == [1e-2 * factor, 0.5 * factor]
        assert optimizer.lr == 1e-2 * factor


def test_a_parameter_that_is_not_trained_is_left_alone(make_model, stream):
    model = make_model()
    model.embed.weight.requires_grad_(False)
    before = copy.deepcopy(model.embed.weight.data)
    take_steps(model, build_optimizer(model, OptimizerConfig(weight_decay=0.5)), stream, range(2))
    assert torch.equal(model.embed.weight, before)


def test_the_state_of_another_model_is_refused(make_model, stream):
    model = make_model()
    optimizer = build_optimizer(model, OptimizerConfig())
    take_steps(model, optimizer, stream, range(1))
    state = optimizer.state_dict()
    with pytest.raises(BindscopeError, match="of another model"):
        build_optimizer(make_model(n_layers=1), OptimizerConfig()).load_state_dict(state)
    with pytest.raises(BindscopeError, match=r"of another model: .* has shape"):
        build_optimizer(make_model(d_mlp=64), OptimizerConfig()).load_state_dict(state)


@pytest.mark.parametrize("shape", [(24, 16), (16, 24), (16, 16)])
def test_muon_is_torchs_muon_up_to_the_precision_of_bfloat16(shape):
    generator = torch.Generator().manual_seed(0)
    ours = torch.nn.Parameter(torch.randn(shape, generator=generator))
    theirs = torch.nn.Parameter(ours.detach().clone())
    start = ours.detach().clone()
    members = (
        Muon([ours], lr=0.02, momentum=0.95, weight_decay=0.1),
        torch.optim.Muon([theirs], lr=0.02, momentum=0.95, weight_decay=0.1),
    )
    for _ in range(4):
        gradient = torch.randn(shape, generator=generator)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        for member in members:
            member.step()
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() < 0.02 * moved


def test_an_orthogonalised_matrix_has_singular_values_near_one():
    for shape in ((24, 16), (16, 24)):
        spectrum = torch.linalg.svdvals(orthogonalise(torch.randn(shape, generator=torch.Generator().manual_seed(1))))
        assert spectrum.min() > 0.6
        assert spectrum.max() < 1.3
