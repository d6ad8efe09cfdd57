"""Transformers written by hand that follow a chain otherwise than ``theory.constructed``: their algorithm is known.

``chase_pointers``: the colon takes the query's name, then layer by layer the name that this one refers to, and last the digit.
``meet_in_the_middle``: the value comes forward to the last right-hand side, and the colon, with the query's name, fetches it.
"""

from __future__ import annotations

import torch

from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.theory import constructed as by_hand


def chase_pointers(lines: int, max_depth: int) -> Transformer:
    """Layer 0: names, and the colon reads the query. Layers 1…max_depth: the colon reads the line of its last name."""
    space, pointers = _space(lines, max_depth + 1)
    model = _empty(space, lines, max_depth + 1)
    first, *hops = (block.attention for block in model.layers)
    _read_names(first, space, pointers[0])
    for hop, pointer, further in zip(hops, pointers, pointers[1:]):
        query, key = _look_up(space, pointer, lines)
        by_hand._write_head(hop, 0, query, key, space.letters, further)
        by_hand._write_head(hop, 1, query, key, space.value, space.answer)
    return model.eval()


def meet_in_the_middle(lines: int, max_depth: int) -> Transformer:
    """As the dereferencer up to the last right-hand side; then the colon, which read the query in layer 0, looks it up."""
    space, (pointer,) = _space(lines, 1)
    model = _empty(space, lines, max_depth + 1)
    first, *hops, last = (block.attention for block in model.layers)
    _read_names(first, space, pointer)
    for hop in hops:
        by_hand._write_head(hop, 0, *by_hand._look_up_name(space, lines), space.value, space.value)
    by_hand._write_head(last, 0, *_look_up(space, pointer, lines), space.value, space.answer)
    return model.eval()


def _space(lines: int, n_pointers: int) -> tuple[by_hand._Space, list[torch.Tensor]]:
    """The usual subspaces in a wider stream, and one of letters for each pointer."""
    space = by_hand._Space(by_hand.n_positions(lines))
    width = space.d_model + n_pointers * by_hand.N_LETTERS
    for name in ("token", "position", "name", "value", "answer", "echo"):
        old = getattr(space, name)
        setattr(space, name, torch.cat([old, torch.zeros(len(old), width - space.d_model)], 1))
    rows = torch.eye(width)[space.d_model :].split(by_hand.N_LETTERS)
    space.d_model = width
    return space, list(rows)


def _empty(space: by_hand._Space, lines: int, n_layers: int) -> Transformer:
    config = ModelConfig(
        d_vocab=by_hand.N_TOKENS,
        n_positions=space.n_positions,
        n_layers=n_layers,
        n_heads=2,
        d_model=space.d_model,
        d_head=by_hand.N_LETTERS + 2 + space.n_positions,
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
        by_hand._write_ends(model, space)
    return model.requires_grad_(False)


def _read_names(attention, space: by_hand._Space, pointer: torch.Tensor) -> None:
    by_hand._write_head(attention, 0, *by_hand._look_back(space, 2), space.letters, space.name)
    by_hand._write_head(attention, 1, *by_hand._look_back(space, 1), space.letters, pointer)


def _look_up(space: by_hand._Space, pointer: torch.Tensor, lines: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key of a head that looks a pointer up among the names, and rests on '=' without one."""
    query, key = by_hand._look_up_name(space, lines)
    most = by_hand.SHARP * (lines + 2)
    query[: by_hand.N_LETTERS] = most * pointer
    query[by_hand.N_LETTERS + 1] = 0  # whether it has a value of its own does not matter
    return query, key
