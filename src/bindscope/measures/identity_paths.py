"""What identity-scaled attention does in a trained model, head by head.

A scaled head has four parts: its scores are trained (q kᵀ) plus identity (a x xᵀ), its outputs are trained (z W_O) plus
identity (b A x). Each part is taken out of one head, or of all heads of the model, and accuracy measured again; and for
each head it is said how much of its scores and outputs each part makes, and where names look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import run
from bindscope.model.transformer import Attention, Transformer
from bindscope.tasks.binding.positions import LINE_WIDTH
from bindscope.tasks.binding.programs import tokens_to_programs
from bindscope.tasks.task import Batch

PARTS = ("identity scores", "identity outputs", "trained scores", "trained outputs")
TARGETS = ("its own token, earlier", "left of the assignment", "right of the assignment", "itself")


def remove_parts(
    model: Transformer, batch: Batch, on_progress: Callable[[int, int], None] | None = None
) -> xr.Dataset:
    """Accuracy by depth with one part of one head set to zero, over (layer, head, part, depth).

    ``accuracy_without_all`` has the part removed from every head at once, over (part, depth); ``accuracy_with_all`` is
    the whole model. The batch has one query a program.
    """
    _require_identity(model)
    depth = batch.labels["depth"][:, 0]
    depths = np.arange(1, depth.max() + 1)

    def measure() -> np.ndarray:
        right = read_answers(model, batch).argmax(1) == batch.targets[:, 0]
        return np.array([right[depth == d].mean() for d in depths])  # [depth]

    config = model.config
    single = np.empty((config.n_layers, config.n_heads, len(PARTS), len(depths)))
    cells = [tuple(map(int, cell)) for cell in np.ndindex(*single.shape[:3])]
    for done, (layer, head, part) in enumerate(cells):
        with without_part(model, PARTS[part], [(layer, head)]):
            single[layer, head, part] = measure()
        if on_progress is not None:
            on_progress(done + 1, len(cells))
    everywhere = list(np.ndindex(config.n_layers, config.n_heads))
    together = []
    for name in PARTS:
        with without_part(model, name, everywhere):
            together.append(measure())
    return xr.Dataset(
        {
            "accuracy_without": (("layer", "head", "part", "depth"), single),
            "accuracy_without_all": (("part", "depth"), np.array(together)),
            "accuracy_with_all": ("depth", measure()),
            "n_at_depth": ("depth", np.array([(depth == d).sum() for d in depths])),
        },
        {"layer": range(config.n_layers), "head": range(config.n_heads), "part": list(PARTS), "depth": depths},
    )


@contextmanager
def without_part(model: Transformer, part: str, heads: Sequence[tuple[int, ...]]) -> Iterator[None]:
    """Inside, the named part of these (layer, head) is zero; afterwards the weights are what they were."""
    if part not in PARTS:
        raise BindscopeError(f"identity paths: unknown part '{part}'; use one of {', '.join(PARTS)}.")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        with torch.no_grad():
            for layer, head in heads:
                _zero_part(model.layers[layer].attention, part, head)
        yield
    finally:
        model.load_state_dict(before)


def compare_parts(model: Transformer, batch: Batch) -> xr.Dataset:
    """How much each head owes to its identity paths, over (layer, head).

    ``identity_share_of_scores``: variance of the identity part over the variance of both parts, of the scores that one
    query gives to the keys it sees. ``identity_share_of_outputs``: the same with squared lengths of what a head adds to
    the stream. ``name_attention`` (layer, head, path, target): attention from names (references and the query
    variable) to four places, by the whole head, by its trained scores alone and by its identity scores alone.
    """
    _require_identity(model)
    tokens = torch.from_numpy(batch.tokens)
    n_layers = model.config.n_layers
    read = [f"L{layer}.{name}" for layer in range(n_layers) for name in ("resid_pre", "rot_q", "rot_k", "pattern", "z")]
    with torch.no_grad():
        trace = run(model, tokens, read=read)
    names, targets = _name_targets(batch.tokens)  # [batch, query], [target, batch, query, key]
    rows = []
    for layer, block in enumerate(model.layers):
        x = block.norm1(trace[f"L{layer}.resid_pre"])  # [batch, position, d_model]
        values = {name: trace[f"L{layer}.{name}"] for name in ("rot_q", "rot_k", "pattern", "z")}
        with torch.no_grad():
            rows.append(_compare_in_layer(block.attention, x, values, names, targets))
    scores, outputs, attention = (np.stack([row[index] for row in rows]) for index in range(3))
    return xr.Dataset(
        {
            "identity_share_of_scores": (("layer", "head"), scores),
            "identity_share_of_outputs": (("layer", "head"), outputs),
            "name_attention": (("layer", "head", "path", "target"), attention),
            "scaled_a": (("layer", "head"), _stack(model, "scaled_a")),
            "scaled_b": (("layer", "head"), _stack(model, "scaled_b")),
        },
        {
            "layer": range(n_layers),
            "head": range(model.config.n_heads),
            "path": ["whole", "trained", "identity"],
            "target": list(TARGETS),
        },
    )


def _compare_in_layer(
    attention: Attention, x: Tensor, values: dict[str, Tensor], names: Tensor, targets: Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of scores and outputs [head], and attention [head, path, target]."""
    q, k = (values[name].transpose(1, 2) for name in ("rot_q", "rot_k"))  # [batch, head, position, d_head]
    trained = q @ k.transpose(2, 3) * attention.config.d_head**-0.5  # [batch, head, query, key]
    identity = attention.scaled_a[:, None, None] * (x @ x.transpose(1, 2))[:, None]
    hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    shares = [_spread(part, hidden) for part in (identity, trained)]  # each [head]
    pattern = values["pattern"]
    written = torch.einsum("bqhe,hem->bqhm", values["z"], attention.W_O).square().sum(-1).mean((0, 1))  # [head]
    echoed = torch.einsum("h,bhqk,bkm->bqhm", attention.scaled_b, pattern, x).square().sum(-1).mean((0, 1))
    paths = (trained + identity, trained, identity)
    softmaxes = [path.masked_fill(hidden, -torch.inf).softmax(-1) for path in paths]
    looks = torch.stack([_attention_to(soft, names, targets) for soft in softmaxes], 1)  # [head, path, target]
    score_share = shares[0] / (shares[0] + shares[1])
    return score_share.numpy(), (echoed / (echoed + written)).numpy(), looks.numpy()


def _spread(scores: Tensor, hidden: Tensor) -> Tensor:
    """Mean variance [head] of the visible scores of a query, over queries that see at least two keys."""
    seen = (~hidden).float()  # [query, key]
    n = seen.sum(1)
    mean = (scores * seen).sum(-1) / n
    variance = ((scores - mean[..., None]).square() * seen).sum(-1) / n  # [batch, head, query]
    return variance[:, :, 1:].mean((0, 2))


def _attention_to(pattern: Tensor, names: Tensor, targets: Tensor) -> Tensor:
    """Mean attention [head, target] of the queries that are names, where the target exists."""
    looks = torch.einsum("bhqk,tbqk->thbq", pattern, targets.float())  # [target, head, batch, query]
    exists = targets.any(3) & names  # [target, batch, query]
    total = (looks * exists[:, None]).sum((2, 3)) / exists.sum((1, 2)).clamp(min=1)[:, None]
    return total.T


def _name_targets(tokens: np.ndarray) -> tuple[Tensor, Tensor]:
    """Which positions are names that refer to an assignment, and for each where its targets stand."""
    programs, queries = tokens_to_programs(tokens)
    n_rows, n_positions = tokens.shape
    rows = np.arange(n_rows)
    refers = np.full((n_rows, n_positions), -1)  # [batch, query]: the line whose variable stands here
    refers[:, 2 : LINE_WIDTH * programs.n_lines : LINE_WIDTH] = programs.reference
    refers[:, LINE_WIDTH * programs.n_lines + 1] = queries[rows, 0]
    names = refers >= 0
    place = np.arange(n_positions)
    before = place[None, :] < place[:, None]  # [query, key]
    same = (tokens[:, :, None] == tokens[:, None, :]) & before
    left = names[:, :, None] & (place == (LINE_WIDTH * refers)[:, :, None])
    right = names[:, :, None] & (place == (LINE_WIDTH * refers + 2)[:, :, None])
    itself = np.broadcast_to(place[:, None] == place, same.shape)
    stacked = np.stack([same & names[:, :, None], left, right, itself & names[:, :, None]])
    return torch.from_numpy(names), torch.from_numpy(stacked)


def _zero_part(attention: Attention, part: str, head: int) -> None:
    size = attention.config.d_head
    own = slice(head * size, (head + 1) * size)
    if part == "identity scores" and attention.identity_a is not None:
        attention.identity_a[head] = 0
    elif part == "identity outputs" and attention.identity_b is not None:
        attention.identity_b[head] = 0
    elif part == "trained scores":
        attention.qkv.weight[own] = 0
        if attention.qkv.bias is not None:
            attention.qkv.bias[own] = 0
    elif part == "trained outputs":
        attention.out.weight[:, own] = 0


def _stack(model: Transformer, name: str) -> np.ndarray:
    return np.stack([getattr(block.attention, name).detach().numpy() for block in model.layers])


def _require_identity(model: Transformer) -> None:
    if not (model.config.identity_qk or model.config.identity_vo):
        raise BindscopeError("identity paths: this model has none; use one with identity_qk or identity_vo.")
