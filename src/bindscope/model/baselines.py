"""Simpler networks that read the same sequences as the transformer, to see what its attention is needed for.

    one-hot-mlp     every position as a one-hot vector of its token, side by side, into an MLP
    embedding-mlp   the same with one embedding shared by all positions
    relation-mlp    the same, and beside the embeddings X the matrix XXᵀ of how alike the positions are
    rnn, lstm       embeddings one after another into a recurrent network; its last state answers

Each takes a transformer's shape for the vocabulary, the positions, the width and the outputs, so that a run says in one
line what replaced its transformer, and answers with the same call.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from bindscope.model.config import BaselineConfig, ModelConfig
from bindscope.tasks.task import Layout


def build_baseline(baseline: BaselineConfig, shape: ModelConfig, generator: torch.Generator) -> nn.Module:
    """A network of this kind, its weights drawn from ``generator`` alone.

    >>> build_baseline(BaselineConfig("lstm"), preset.config.model, torch.Generator().manual_seed(0))(tokens).shape
    torch.Size([16, 1, 1])
    """
    network = _KINDS[baseline.kind](baseline, shape)
    _draw_weights(network, generator)
    return network


class _Answering(nn.Module):
    """Answers once, whatever columns are asked for: these networks read a string as a whole."""

    def forward(self, tokens: Tensor, layout: Layout | None = None, at: Tensor | None = None) -> Tensor:
        answer = self.answer(tokens)[:, None]  # [batch, 1, output]
        return answer.expand(-1, 1 if at is None else len(at), -1)

    def answer(self, tokens: Tensor) -> Tensor:
        raise NotImplementedError


class OneHotMLP(_Answering):
    """The first layer is a table of one row for each (position, token): a one-hot input times a matrix."""

    def __init__(self, baseline: BaselineConfig, shape: ModelConfig) -> None:
        super().__init__()
        self.d_vocab = shape.d_vocab
        self.table = nn.Embedding(shape.n_positions * shape.d_vocab, baseline.d_hidden)
        self.bias = nn.Parameter(torch.zeros(baseline.d_hidden))
        self.rest = _stack(baseline.d_hidden, baseline, shape.outputs, first=False)

    def answer(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device) * self.d_vocab
        return self.rest(torch.relu(self.table(tokens + positions).sum(1) + self.bias))


class EmbeddingMLP(_Answering):
    """Embeddings side by side into an MLP."""

    def __init__(self, baseline: BaselineConfig, shape: ModelConfig, n_more: int = 0) -> None:
        super().__init__()
        self.embed = nn.Embedding(shape.d_vocab, shape.d_model)
        self.layers = _stack(shape.n_positions * shape.d_model + n_more, baseline, shape.outputs)

    def answer(self, tokens: Tensor) -> Tensor:
        return self.layers(self.embed(tokens).flatten(1))


class RelationMLP(EmbeddingMLP):
    """An MLP that is also given XXᵀ, X the embeddings: large where two positions hold the same token."""

    def __init__(self, baseline: BaselineConfig, shape: ModelConfig) -> None:
        super().__init__(baseline, shape, n_more=shape.n_positions**2)

    def answer(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)  # [batch, position, d_model]
        return self.layers(torch.cat([x.flatten(1), (x @ x.transpose(1, 2)).flatten(1)], 1))


class Recurrent(_Answering):
    """A recurrent network whose last state answers."""

    def __init__(self, baseline: BaselineConfig, shape: ModelConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(shape.d_vocab, shape.d_model)
        kind = nn.RNN if baseline.kind == "rnn" else nn.LSTM
        self.recurrent = kind(shape.d_model, baseline.d_hidden, baseline.n_layers, batch_first=True)
        self.out = nn.Linear(baseline.d_hidden, shape.outputs)

    def answer(self, tokens: Tensor) -> Tensor:
        states, _ = self.recurrent(self.embed(tokens))
        return self.out(states[:, -1])


_KINDS = {
    "one-hot-mlp": OneHotMLP,
    "embedding-mlp": EmbeddingMLP,
    "relation-mlp": RelationMLP,
    "rnn": Recurrent,
    "lstm": Recurrent,
}


def _stack(d_in: int, baseline: BaselineConfig, d_out: int, first: bool = True) -> nn.Sequential:
    """Linear maps with ReLUs between them, ``n_layers`` hidden ones in all; without the first if it is made elsewhere."""
    widths = [d_in] + [baseline.d_hidden] * (baseline.n_layers - (0 if first else 1))
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], d_out))


@torch.no_grad()
def _draw_weights(network: nn.Module, generator: torch.Generator) -> None:
    """Embeddings N(0, 1), all else uniform within ±1/√fan_in, as torch starts them; a table counts one row a position."""
    for name, parameter in network.named_parameters():
        if name.startswith("embed"):
            parameter.normal_(generator=generator)
        elif name.startswith("table"):
            bound = parameter.shape[1] ** -0.5
            parameter.uniform_(-bound, bound, generator=generator)
        else:
            bound = (parameter.shape[-1] if parameter.ndim > 1 else max(parameter.numel(), 1)) ** -0.5
            parameter.uniform_(-bound, bound, generator=generator)
