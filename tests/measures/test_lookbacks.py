"""Lookbacks: in written models address, pointer and payload stand where they were put; freezing an address stops a name."""

import numpy as np
import pytest
import torch

from bindscope.interventions.rewriting import read_streams, rewritten_answers
from bindscope.measures.binding.lookbacks import draw_lookback_pairs, measure_lookbacks
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import construct_dereferencer
from measures.constructed_pointers import meet_in_the_middle

TASK = BindingTask(lines=8, max_depth=2)


@pytest.fixture(scope="module")
def drawn():
    return draw_lookback_pairs(TASK, np.random.default_rng(0), 20)


@pytest.fixture(scope="module")
def constructed(drawn):
    return measure_lookbacks(construct_dereferencer(8, 2), drawn)


def test_a_value_gets_its_address_in_the_first_layer_and_hands_both_on(constructed) -> None:
    labels = [str(constructed.moved[int(index)].values) for index in constructed.binding.argmax("moved")]
    assert labels == ["payload", "both", "unchanged", "unchanged"]
    assert (constructed.binding.max("moved") > 0.9).all()


def test_a_name_acts_through_the_address_alone(constructed) -> None:
    exchanged = constructed.source.sel(layer=0)
    assert [float(exchanged.sel(frozen=name)) for name in ("none", "address", "rest")] == [1, 0, 1]
    assert (constructed.source.sel(layer=slice(1, None)) == 0).all()


def test_the_end_holds_a_pointer_until_it_has_the_payload(constructed, drawn) -> None:
    end = constructed.end.sel(position="end")
    np.testing.assert_array_equal(end.sel(came="pointer"), [1, 1, 0, 0])
    np.testing.assert_array_equal(end.sel(came="payload"), [0, 0, 1, 1])
    colon = measure_lookbacks(meet_in_the_middle(8, 2), drawn).end.sel(position="colon")
    np.testing.assert_array_equal(colon.sel(came="pointer"), [0, 1, 1])  # it has read the query, and looks up last


def test_an_untrained_model_looks_nothing_back(drawn) -> None:
    config = ModelConfig(d_vocab=40, n_positions=35, n_layers=2, n_heads=2, d_model=16, d_mlp=16)
    dataset = measure_lookbacks(Transformer(config, torch.Generator().manual_seed(0)).eval(), drawn)
    assert (dataset.source < 0.4).all()
    assert (dataset.binding.sel(moved=["address", "both"]) < 0.4).all()
    assert (dataset.end.sel(came=["pointer", "payload"]) < 0.4).all()


@pytest.mark.parametrize("causal", [True, False])
def test_rewritten_and_frozen_streams_equal_running_the_model_again(drawn, causal: bool) -> None:
    config = ModelConfig(d_vocab=40, n_positions=35, n_layers=3, n_heads=2, d_model=16, d_mlp=16, causal=causal)
    model = Transformer(config, torch.Generator().manual_seed(1)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.5 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel())))
    tokens, at = torch.from_numpy(drawn.bindings.base.tokens), 34
    frozen = torch.zeros(tokens.shape, dtype=torch.bool)
    frozen[:, 14:18] = True
    noise = torch.randn(len(tokens), 16, generator=torch.Generator().manual_seed(2))

    def push(layer: int, rows: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
        stream[:, 12] += noise[rows]
        return stream

    streams = read_streams(model, tokens, at)
    first = torch.full((len(tokens),), 12)
    for marks in (None, frozen):
        answers = rewritten_answers(model, tokens, at, {"push": push}, first, marks)[0]
        for layer in range(3):
            write = {f"L{layer}.resid_pre": lambda stream: _pushed(stream, noise)}
            for later in range(layer + 1, 3) if marks is not None else ():
                write[f"L{later}.resid_pre"] = _freezing(streams[later], frozen)
            again = run(model, tokens, write=write).logits[:, at].argmax(-1)
            np.testing.assert_array_equal(answers[layer], again)


def _pushed(stream: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    stream = stream.clone()
    stream[:, 12] += noise
    return stream


def _freezing(kept: torch.Tensor, frozen: torch.Tensor):
    return lambda stream: torch.where(frozen[:, :, None], kept, stream)
