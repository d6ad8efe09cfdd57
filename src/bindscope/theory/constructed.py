"""A transformer whose weights we write: it dereferences binding programs by design, so its circuit is a known answer.

Nothing is trained and nothing is normalised; the residual stream is one-hot subspaces side by side:

    token      which token stands here               position   which position this is
    name       the variable that a right-hand side is assigned to
    value      the digit known here; a digit token has its own from the start
    answer     the digit to say at the colon         echo       a copy that nothing reads

Head 0 is the mechanism, one step a layer:

    layer 0              every token reads the token two back: a right-hand side learns its ``name``
    layers 1…max_depth   a letter without a value reads the ``value`` of the latest earlier right-hand side whose
                         ``name`` it is; in layer k the k-th link of a chain hands its value on, last to the query
    layer max_depth + 1  every token reads the ``value`` one back into ``answer``: the colon reads the query

Whoever has a value, or finds no such name, rests on the '=' tokens, which hold no value. So each link receives its
value once, in one known layer, and ``constructed_circuit`` can list every step. Head 1 is a decoy: in every layer it
copies the value one back into ``echo``. The answer can be read there, and changing it changes nothing.

    >>> model = construct_dereferencer(lines=16, max_depth=4)
    >>> tokens = torch.tensor([VOCABULARY.encode("a=5\\nb=a\\n#b:")])
    >>> model(tokens)[0, -1].argmax().item()
    5
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Attention, Transformer
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH, n_positions
from bindscope.tasks.binding.program import DIGITS, EQUALS, LETTERS, VOCABULARY

N_DIGITS, N_LETTERS, N_TOKENS = len(DIGITS), len(LETTERS), len(VOCABULARY)
RIGHT_HAND_SIDE = LINE_PARTS.index("rhs")
MECHANISM, DECOY = 0, 1  # the two heads
SHARP = 120.0  # a score ahead by this much takes all the weight: e^-120 is 0 in float32
LOGIT = 20.0  # the logit of the answer; all others are 0


@dataclass(frozen=True)
class Step:
    """One step of the circuit: in this layer this head moves information between two positions of the queried chain.

    Positions are ``lhs k`` and ``rhs k``, the two sides of the chain's k-th line from its constant on, then ``query``
    and ``colon``.
    """

    layer: int
    head: int
    source: str
    target: str


def construct_dereferencer(lines: int = 16, max_depth: int = 4) -> Transformer:
    """A transformer that answers every program of up to ``lines`` lines whose chains are at most ``max_depth`` deep.

    Any length and any number of shared-prefix queries; with reassignment the latest earlier line counts.
    """
    if lines < 1 or max_depth < 1:
        raise BindscopeError(f"a dereferencer needs lines and max_depth of at least 1, got {lines} and {max_depth}.")
    space = _Space(n_positions(lines))
    config = ModelConfig(
        d_vocab=N_TOKENS,
        n_positions=space.n_positions,
        n_layers=max_depth + 2,
        n_heads=2,
        d_model=space.d_model,
        d_head=N_LETTERS + 2 + space.n_positions,
        d_mlp=1,
        positions="learned",
        norm="none",
        bias=False,
        mlp_layers=(),
    )
    model = Transformer(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        _write_ends(model, space)
        first, *hops, last = (block.attention for block in model.layers)
        _write_head(first, MECHANISM, *_look_back(space, 2), space.letters, space.name)
        for hop in hops:
            _write_head(hop, MECHANISM, *_look_up_name(space, lines), space.value, space.value)
        _write_head(last, MECHANISM, *_look_back(space, 1), space.value, space.answer)
        for block in model.layers:
            _write_head(block.attention, DECOY, *_look_back(space, 1), space.value, space.echo)
    return model.eval()


def constructed_circuit(depth: int, max_depth: int = 4) -> tuple[Step, ...]:
    """Every step that the answer to a query of this depth depends on, in order.

    >>> [f"L{step.layer} {step.source} → {step.target}" for step in constructed_circuit(1, max_depth=2)]
    ['L0 lhs 1 → rhs 1', 'L1 rhs 1 → query', 'L3 query → colon']
    """
    if not 1 <= depth <= max_depth:
        raise BindscopeError(f"depth {depth}: this dereferencer follows chains of depth 1 to {max_depth}.")
    names = (Step(0, MECHANISM, f"lhs {link}", f"rhs {link}") for link in range(1, depth + 1))
    hops = (Step(link, MECHANISM, f"rhs {link}", f"rhs {link + 1}") for link in range(1, depth))
    ends = Step(depth, MECHANISM, f"rhs {depth}", "query"), Step(max_depth + 1, MECHANISM, "query", "colon")
    return (*names, *hops, *ends)


class _Space:
    """The residual stream's subspaces. Each is a [width, d_model] matrix of unit rows that reads it."""

    def __init__(self, n_positions: int) -> None:
        widths = dict(token=N_TOKENS, position=n_positions, name=N_LETTERS)
        widths |= dict(value=N_DIGITS, answer=N_DIGITS, echo=N_DIGITS)
        self.n_positions, self.d_model = n_positions, sum(widths.values())
        parts = torch.eye(self.d_model).split(list(widths.values()))
        self.token, self.position, self.name, self.value, self.answer, self.echo = parts

    @property
    def letters(self) -> Tensor:
        """The letters among the tokens, [letter, d_model]."""
        return self.token[N_DIGITS : N_DIGITS + N_LETTERS]


def _write_ends(model: Transformer, space: _Space) -> None:
    """Embedding, positions and unembedding."""
    model.embed.weight.copy_(space.token)
    model.embed.weight[:N_DIGITS] += space.value  # a digit knows its value
    model.pos_embed.copy_(space.position)
    assert model.unembed is not None
    model.unembed.weight[:N_DIGITS] = LOGIT * space.answer


def _write_head(attention: Attention, head: int, query: Tensor, key: Tensor, read: Tensor, write: Tensor) -> None:
    """Set one head: its scores are (query x)·(key y), and what ``read`` finds in y is added where ``write`` points."""
    config = attention.config
    q, k, v = attention.qkv.weight.view(3, config.n_heads, config.d_head, config.d_model)[:, head]
    out = attention.out.weight.view(config.d_model, config.n_heads, config.d_head)[:, head]
    q[: len(query)] = query * config.d_head**0.5  # attention divides its scores by this
    k[: len(key)] = key
    v[: len(read)] = read
    out[:, : len(write)] = write.T


def _look_back(space: _Space, distance: int) -> tuple[Tensor, Tensor]:
    """Query and key of a head that attends ``distance`` positions back; the first positions attend to themselves."""
    positions = torch.arange(space.n_positions)
    behind = torch.where(positions < distance, positions, positions - distance)  # [position]
    wanted = torch.zeros(space.n_positions, space.n_positions)  # [wanted position, position]
    wanted[behind, positions] = SHARP
    return wanted @ space.position, space.position


def _look_up_name(space: _Space, lines: int) -> tuple[Tensor, Tensor]:
    """Query and key of the head that looks its own letter up among the names.

    With M = SHARP·(lines + 2), greater than what the line number can add, a key scores

        M [its name is my letter] + (M + SHARP·its line) [it is a right-hand side] − 3M [it is myself]
        + (2M − SHARP + 2M [I have a value]) [it is '=']

    so any other name stays below the '=', which stays below my own, the latest one highest, until I have a value.
    """
    most = SHARP * (lines + 2)
    positions = torch.arange(space.n_positions)
    anywhere = space.position.sum(0)  # [d_model]: reads 1 at every position
    is_equals = space.token[EQUALS]
    is_right = (positions % LINE_WIDTH == RIGHT_HAND_SIDE).float()  # [position]
    preferred = (is_right * (most + SHARP * (positions // LINE_WIDTH))) @ space.position  # [d_model]
    alone = preferred + (2 * most - SHARP) * is_equals  # what a key scores by itself
    has_value = 2 * most * space.value.sum(0)
    query = torch.cat([most * space.letters, anywhere[None], has_value[None], -3 * most * space.position])
    key = torch.cat([space.name, alone[None], is_equals[None], space.position])
    return query, key
