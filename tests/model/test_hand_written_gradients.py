"""The parts whose gradient we wrote ourselves, against autograd and finite differences."""

from dataclasses import replace

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from bindscope.model.identity_attention import attend_with_identity
from bindscope.model.rope import rope_angles, rotate
from bindscope.model.run import run
from model.test_transformer import IDENTITY, SMALL, make_model, random_tokens


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("hidden", [False, True], ids=["all visible", "causal"])
def test_attention_with_identity_has_the_gradient_of_finite_differences(hidden):
    bias = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), float("-inf"))[1:] if hidden else None
    inputs = (draw(2, 3, 2, 3), draw(2, 4, 2, 3), draw(2, 4, 2, 3), draw(2, 3, 5), draw(2, 4, 5), draw(2), draw(2))
    assert gradcheck(lambda *given: attend_with_identity(*given, bias), inputs)


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_rotation_has_the_gradient_of_finite_differences_twice(fraction):
    cos, sin = rope_angles(replace(SMALL, rope_fraction=fraction), torch.tensor([0, 3, 7]))
    turn = lambda x: rotate(x, cos.double(), sin.double())  # noqa: E731
    assert gradcheck(turn, draw(2, 3, 2, 4))
    assert gradgradcheck(turn, draw(2, 3, 2, 4))


@pytest.mark.parametrize("parts", [IDENTITY, IDENTITY | {"identity_vo": False}, IDENTITY | {"identity_qk": False}])
@pytest.mark.parametrize("at", [None, torch.tensor([2, 7])], ids=["all columns", "some columns"])
def test_training_without_the_pattern_has_the_gradient_of_training_with_it(parts, at):
    gradients = []
    for read in ([], [f"L{layer}.pattern" for layer in range(SMALL.n_layers)]):
        model = make_model(**parts)
        logits = run(model, random_tokens(), read=read, at=at).logits
        (logits * draw(*logits.shape).float()).sum().backward()
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    assert gradients[0].keys() == gradients[1].keys()
    for name in gradients[0]:
        torch.testing.assert_close(gradients[0][name], gradients[1][name], msg=name, atol=1e-4, rtol=1e-4)
