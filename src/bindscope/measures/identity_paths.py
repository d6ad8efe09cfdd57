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
from bindscope.model.run import run, to_host
from bindscope.model.transformer import Attention, Transformer
from bindscope.tasks.binding.positions import LINE_WIDTH
from bindscope.tasks.binding.programs import tokens_to_programs
from bindscope.tasks.task import Batch

PARTS = ("identity scores", "identity outputs", "trained scores", "trained outputs", "identity scores reversed")
TARGETS = ("itself", "own token earlier", "left of the assignment", "right of the assignment", "right of another")
HeadSet = Sequence[tuple[int, int]]  # (layer, head)


def remove_parts(model: Transformer, batch: Batch, on_progress: Callable[[int, int], None] | None = None) -> xr.Dataset:
    """Accuracy by depth with one part of one head taken out, over (layer, head, part, depth).

    ``accuracy_without_layer`` (layer, part, depth) has the part taken out of all heads of a layer, ``…_later`` (part,
    depth) of all layers but the first, ``…_all`` (part, depth) of all; ``accuracy_with_all`` is the whole model. The
    last part is a control of equal strength: the identity scores with their sign turned. One query a program.
    """
    _require_identity(model)
    n_layers, n_heads = model.config.n_layers, model.config.n_heads
    depth = batch.labels["depth"][:, 0]
    depths = np.arange(1, depth.max() + 1)
    everywhere = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    by_head: list[HeadSet] = [[cell] for cell in everywhere]
    by_layer: list[HeadSet] = [[cell for cell in everywhere if cell[0] == layer] for layer in range(n_layers)]
    sets = [*by_head, *by_layer, everywhere[n_heads:], everywhere]
    measured = np.empty((len(sets), len(PARTS), len(depths)))
    for done, (index, part) in enumerate(np.ndindex(len(sets), len(PARTS)), start=1):
        with without_part(model, PARTS[part], sets[index]):
            measured[index, part] = accuracy_by_depth(model, batch, depths)
        if on_progress is not None:
            on_progress(done, len(sets) * len(PARTS))
    single = measured[: len(by_head)].reshape(n_layers, n_heads, len(PARTS), len(depths))
    return xr.Dataset(
        {
            "accuracy_without": (("layer", "head", "part", "depth"), single),
            "accuracy_without_layer": (("layer", "part", "depth"), measured[len(by_head) : -2]),
            "accuracy_without_later": (("part", "depth"), measured[-2]),
            "accuracy_without_all": (("part", "depth"), measured[-1]),
            "accuracy_with_all": ("depth", accuracy_by_depth(model, batch, depths)),
            "n_at_depth": ("depth", np.array([(depth == d).sum() for d in depths])),
        },
        {"layer": range(n_layers), "head": range(n_heads), "part": list(PARTS), "depth": depths},
    )


def accuracy_by_depth(model: Transformer, batch: Batch, depths: np.ndarray) -> np.ndarray:
    """Right answers to the (first) query of each program, [depth]."""
    depth = batch.labels["depth"][:, 0]
    right = read_answers(model, batch).argmax(1) == batch.targets[:, 0]
    return np.array([right[depth == d].mean() for d in depths])


@contextmanager
def without_part(model: Transformer, part: str, heads: HeadSet) -> Iterator[None]:
    """Inside, the named part of these (layer, head) is zero; afterwards the weights are what they were."""
    if part not in PARTS:
        raise BindscopeError(f"identity-scaling terms: unknown part '{part}'; use one of {', '.join(PARTS)}.")
    before = {name: value.clone() for name, value in model.state_dict().items() if ".attention." in name}
    try:
        with torch.no_grad():
            for layer, head in heads:
                _zero_part(model.layers[layer].attention, part, head)
        yield
    finally:
        model.load_state_dict(before, strict=False)


def compare_parts(model: Transformer, batch: Batch) -> xr.Dataset:
    """How much each head owes to its identity-scaling terms, over (layer, head).

    ``identity_fraction_of_scores``: variance of the identity part over the variance of both parts, of the scores that one
    query gives to the keys it sees. ``identity_fraction_of_outputs``: the same with squared lengths of what a head adds to
    the residual stream. ``name_attention`` (layer, head, path, target): attention from names (references and the query
    variable) to certain positions, by the whole head, by its trained scores alone and by its identity scores alone.
    ``likeness`` (layer, target): the mean product x·x/d_model, after LayerNorm, of a name with what stands there.
    """
    _require_identity(model)
    tokens = torch.from_numpy(batch.tokens)
    n_layers = model.config.n_layers
    read = [f"L{layer}.{name}" for layer in range(n_layers) for name in ("resid_pre", "rot_q", "rot_k", "pattern", "z")]
    with torch.no_grad():
        trace = run(model, tokens, read=read)
    names, targets = _name_targets(batch.tokens)  # [batch, query], [target, batch, query, key]
    rows, likeness = [], []
    for layer, block in enumerate(model.layers):
        values = {name: to_host(trace[f"L{layer}.{name}"]) for name in ("rot_q", "rot_k", "pattern", "z")}
        with torch.no_grad():
            x = to_host(block.norm1(trace[f"L{layer}.resid_pre"]))  # [batch, position, d_model]
            rows.append(_compare_in_layer(block.attention, x, values, names, targets))
            likeness.append(_mean_over((x @ x.transpose(1, 2) / x.shape[-1]), targets))
    scores, outputs, attention = (np.stack([row[index] for row in rows]) for index in range(3))
    return xr.Dataset(
        {
            "identity_fraction_of_scores": (("layer", "head"), scores),
            "identity_fraction_of_outputs": (("layer", "head"), outputs),
            "name_attention": (("layer", "head", "path", "target"), attention),
            "likeness": (("layer", "target"), np.stack(likeness)),
        },
        {
            "layer": range(n_layers),
            "head": range(model.config.n_heads),
            "path": ["whole", "trained", "identity"],
            "target": list(TARGETS),
        },
    ).merge(scales_of(model))


def scales_of(model: Transformer) -> xr.Dataset:
    """What each head multiplies x xᵀ by in its scores and A x by in its outputs, over (layer, head)."""
    scales = {name: (("layer", "head"), _stack(model, name)) for name in ("scaled_a", "scaled_b")}
    return xr.Dataset(scales, {"layer": range(model.config.n_layers), "head": range(model.config.n_heads)})


def _compare_in_layer(
    attention: Attention, x: Tensor, values: dict[str, Tensor], names: Tensor, targets: Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fractions of scores and outputs [head], and attention [head, path, target]."""
    q, k = (values[name].transpose(1, 2) for name in ("rot_q", "rot_k"))  # [batch, head, position, d_head]
    trained = q @ k.transpose(2, 3) * attention.config.d_head**-0.5  # [batch, head, query, key]
    scaled_a, scaled_b, out = map(to_host, (attention.scaled_a, attention.scaled_b, attention.W_O))
    identity = scaled_a[:, None, None] * (x @ x.transpose(1, 2))[:, None]
    hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    fractions = [_spread(part, hidden) for part in (identity, trained)]  # each [head]
    pattern = values["pattern"]
    written = torch.einsum("bqhe,hem->bqhm", values["z"], out).square().sum(-1).mean((0, 1))  # [head]
    echoed = torch.einsum("h,bhqk,bkm->bqhm", scaled_b, pattern, x).square().sum(-1).mean((0, 1))
    paths = (trained + identity, trained, identity)
    softmaxes = [path.masked_fill(hidden, -torch.inf).softmax(-1) for path in paths]
    looks = torch.stack([_attention_to(soft, names, targets) for soft in softmaxes], 1)  # [head, path, target]
    score_fraction = fractions[0] / (fractions[0] + fractions[1])
    return score_fraction.numpy(), (echoed / (echoed + written)).numpy(), looks.numpy()


def _spread(scores: Tensor, hidden: Tensor) -> Tensor:
    """Mean variance [head] of the visible scores of a query, over queries that see at least two keys."""
    seen = (~hidden).to(scores.dtype)  # [query, key]
    n = seen.sum(1)
    mean = (scores * seen).sum(-1) / n
    variance = ((scores - mean[..., None]).square() * seen).sum(-1) / n  # [batch, head, query]
    return variance[:, :, 1:].mean((0, 2))


def _attention_to(pattern: Tensor, names: Tensor, targets: Tensor) -> Tensor:
    """Mean attention [head, target] of the queries that are names, where the target exists."""
    looks = torch.einsum("bhqk,tbqk->thbq", pattern, targets.to(pattern.dtype))  # [target, head, batch, query]
    exists = targets.any(3) & names  # [target, batch, query]
    total = (looks * exists[:, None]).sum((2, 3)) / exists.sum((1, 2)).clamp(min=1)[:, None]
    return total.T


def _mean_over(products: Tensor, targets: Tensor) -> np.ndarray:
    """The mean [target] of products [batch, query, key] over the keys that are the target."""
    chosen = targets.to(products.dtype)  # [target, batch, query, key]
    total = (chosen * products).sum((1, 2, 3)) / chosen.sum((1, 2, 3)).clamp(min=1)
    return np.asarray(total.numpy())


def _name_targets(tokens: np.ndarray) -> tuple[Tensor, Tensor]:
    """Which positions are names that refer to an assignment, and for each where its targets stand."""
    programs, queries = tokens_to_programs(tokens)
    n_rows, n_positions = tokens.shape
    rows = np.arange(n_rows)
    refers = np.full((n_rows, n_positions), -1)  # [batch, query]: the line whose variable stands here
    refers[:, 2 : LINE_WIDTH * programs.n_lines : LINE_WIDTH] = programs.reference
    refers[:, LINE_WIDTH * programs.n_lines + 1] = queries[rows, 0]
    names = refers >= 0
    is_name = names[:, :, None]
    index = np.arange(n_positions)
    before = index[None, :] < index[:, None]  # [query, key]
    assigned = index == (LINE_WIDTH * refers + 2)[:, :, None]  # [batch, query, key]
    on_right = (index % LINE_WIDTH == 2) & (index < LINE_WIDTH * programs.n_lines)  # [key]
    found = {
        "itself": np.broadcast_to(index[:, None] == index, assigned.shape),
        "own token earlier": (tokens[:, :, None] == tokens[:, None, :]) & before,
        "left of the assignment": index == (LINE_WIDTH * refers)[:, :, None],
        "right of the assignment": assigned,
        "right of another": on_right & before & ~assigned,
    }
    stacked = np.stack([found[name] & is_name for name in TARGETS])  # [target, batch, query, key]
    return torch.from_numpy(names), torch.from_numpy(stacked)


def _zero_part(attention: Attention, part: str, head: int) -> None:
    size = attention.config.d_head
    own = slice(head * size, (head + 1) * size)
    if part == "identity scores" and attention.identity_a is not None:
        attention.identity_a[head] = 0
    elif part == "identity outputs" and attention.identity_b is not None:
        attention.identity_b[head] = 0
    elif part == "identity scores reversed" and attention.identity_a is not None:
        attention.identity_a[head] *= -1
    elif part == "trained scores":
        attention.qkv.weight[own] = 0
        if attention.qkv.bias is not None:
            attention.qkv.bias[own] = 0
    elif part == "trained outputs":
        attention.out.weight[:, own] = 0


def _stack(model: Transformer, name: str) -> np.ndarray:
    return np.stack([to_host(getattr(block.attention, name).detach()).numpy() for block in model.layers])


def _require_identity(model: Transformer) -> None:
    if not (model.config.identity_qk or model.config.identity_vo):
        raise BindscopeError("identity-scaling terms: this model has none; use one with identity_qk or identity_vo.")
