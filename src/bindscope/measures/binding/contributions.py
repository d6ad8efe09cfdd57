"""Which parts of the network write the answer: the direct contribution of every head, MLP and embedding to its logit.

The last stream is a sum of what all parts added to it. With the scale of the last LayerNorm frozen at its value in this
run, logits are linear in that sum, so each part has its own contribution to a logit and the contributions add up to it exactly:

    logit_c − mean logit of the ten digits = Σ over parts of ⟨(part − mean(part))/σ · γ, u_c⟩ + ⟨β, u_c⟩

with γ, β the LayerNorm's weight and bias and u_c the unembedding of c less the mean over digits. A part that works
through others (it moved the value that a later head reads) has no direct contribution; ablation finds those.

>>> parts = logit_contributions(model, batch)
>>> parts.contribution.sel(candidate="answer", component="L4.H1").mean("example")
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import TOKENS_AT_ONCE, evaluating
from bindscope.model.run import Trace, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import outputs_of_digits
from bindscope.tasks.task import Batch

CANDIDATES = ("answer", "line 1")
READ_AT_ONCE = TOKENS_AT_ONCE // 4  # tokens; every head's result is held at all of them
Path = Callable[[Tensor], np.ndarray]


def logit_contributions(model: Transformer, batch: Batch) -> xr.Dataset:
    """Contributions over (candidate, component, example) at the answer's column, in logits above the digits' mean.

    ``contribution`` sums over components to ``logit`` (candidate, example). ``identity_path`` is the part of a head's
    contribution that its identity scaling makes (0 where the model has none). Components: ``embed``, ``L0.H0`` …,
    ``L0.bias`` of the attention output, ``L0.mlp``, and ``norm`` for the last LayerNorm's bias.
    """
    if "rule_line_1" not in batch.labels:
        raise BindscopeError("contributions: answer and line 1 compete in binding programs only.")
    line_1 = outputs_of_digits(batch)[batch.labels["rule_line_1"][:, 0]]  # [example]
    candidates = np.stack([batch.targets[:, 0], line_1])  # [candidate, example]
    n_rows = max(1, READ_AT_ONCE // batch.tokens.shape[1])
    parts = []
    with evaluating(model), torch.no_grad():
        for start in range(0, len(batch), n_rows):
            rows = slice(start, start + n_rows)
            parts.append(_contribute(model, batch.take(rows), candidates[:, rows]))
    names = list(parts[0][0])
    whole, identity = (
        np.stack([np.concatenate([part[which][name] for part in parts], 1) for name in names], 1) for which in (0, 1)
    )  # [candidate, component, example]
    dims = ("candidate", "component", "example")
    dataset = xr.Dataset(
        {
            "contribution": (dims, whole, {"units": "logit"}),
            "identity_path": (dims, identity, {"units": "logit"}),
            "logit": (dims[::2], np.concatenate([part[2] for part in parts], 1), {"units": "logit"}),
        },
        {"candidate": list(CANDIDATES), "component": names},
    )
    dataset.attrs = {"title": "direct contributions to logits", "n": len(batch), "reference": "mean of the ten digits"}
    return dataset


def _contribute(
    model: Transformer, batch: Batch, candidates: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """Contributions and identity-scaling terms [candidate, example] by component, and the logits they add up to."""
    at = int(batch.target_positions[0])
    tokens = torch.from_numpy(np.ascontiguousarray(batch.tokens))
    trace = run(model, tokens, _sites(model, at), layout=batch.layout, at=torch.tensor([at]))
    pure = _double(model.W_U)  # [d_model, output]
    digits = torch.from_numpy(outputs_of_digits(batch))
    centred = (pure - pure[:, digits].mean(1, keepdim=True)).T[torch.from_numpy(candidates)]
    last = _at(trace, Site("resid_post", model.config.n_layers - 1, positions=(at,)))  # [example, d_model]
    through = _freeze_norm(model.norm, last)

    def score(part: Tensor) -> np.ndarray:
        return (through(part)[None] * centred).sum(-1).numpy()  # [candidate, example]

    whole, identity = _components(model, trace, at, score)
    bias = _double(model.norm.bias) if isinstance(model.norm, nn.LayerNorm) else torch.zeros_like(last[0])
    whole["norm"] = (bias * centred).sum(-1).numpy()
    logits = _double(trace.logits[:, 0])  # [example, output]
    above = logits - logits[:, digits].mean(1, keepdim=True)
    picked = above[torch.arange(len(batch)), torch.from_numpy(candidates)]
    nothing = np.zeros_like(whole["norm"])
    return whole, {name: identity.get(name, nothing) for name in whole}, picked.numpy()


def _components(
    model: Transformer, trace: Trace, at: int, score: Path
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Every part's score in the order of the network, and that of each head's identity-scaling term."""
    start = _at(trace, Site("embed", positions=(at,)))
    if model.config.positions in ("learned", "normal"):
        start = start + _at(trace, Site("pos_embed", positions=(at,)))
    whole, identity = {"embed": score(start)}, {}
    for layer, block in enumerate(model.layers):
        result = _at(trace, Site("result", layer, positions=(at,)))  # [example, head, d_model]
        z = _at(trace, Site("z", layer, positions=(at,)))  # [example, head, d_head]
        echo = result - torch.einsum("bhe,hem->bhm", z, _double(block.attention.W_O))
        for head in range(model.config.n_heads):
            whole[f"L{layer}.H{head}"] = score(result[:, head])
            if block.attention.identity_b is not None:
                identity[f"L{layer}.H{head}"] = score(echo[:, head])
        if block.attention.out.bias is not None:
            whole[f"L{layer}.bias"] = score(_double(block.attention.out.bias).expand_as(start))
        if block.mlp is not None:
            whole[f"L{layer}.mlp"] = score(_at(trace, Site("mlp_out", layer, positions=(at,))))
    return whole, identity


def _sites(model: Transformer, at: int) -> list[Site]:
    config = model.config
    sites = [Site("embed", positions=(at,)), Site("resid_post", config.n_layers - 1, positions=(at,))]
    if config.positions in ("learned", "normal"):
        sites.append(Site("pos_embed", positions=(at,)))
    sites += [Site(name, layer, positions=(at,)) for layer in range(config.n_layers) for name in ("result", "z")]
    return sites + [Site("mlp_out", layer, positions=(at,)) for layer in config.layers_with_mlp]


def _double(values: Tensor) -> Tensor:
    return to_host(values).double()


def _at(trace: Trace, site: Site) -> Tensor:
    """A value read at one column, without its position axis, in double precision."""
    return _double(trace[site][:, 0])


def _freeze_norm(norm: nn.Module, stream: Tensor) -> Callable[[Tensor], Tensor]:
    """What the last LayerNorm does to a part of ``stream [example, d_model]``, its bias aside."""
    if isinstance(norm, nn.RMSNorm):
        assert norm.eps is not None
        factor = (stream.square().mean(-1, keepdim=True) + norm.eps).rsqrt() * _double(norm.weight)
        return lambda part: part * factor
    if not isinstance(norm, nn.LayerNorm):
        return lambda part: part
    scale = (stream.var(-1, unbiased=False, keepdim=True) + norm.eps).rsqrt()  # [example, 1]
    weight = _double(norm.weight)
    return lambda part: (part - part.mean(-1, keepdim=True)) * scale * weight
