"""Activation patching as other libraries do it, one run of the model a cell, on one exported GPT-NeoX; for ``patching.py``.

Each peer takes what it needs from the source rows once, then gives the logits of the last column of any cell. All pairs
of a cell go in one batch, each with a position of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

os.environ.setdefault("HF_HUB_OFFLINE", "1")


class Peer(Protocol):
    def take_from(self, source: Tensor) -> None:
        """Run the source rows [pair, position] and keep the streams that enter layers, and every head's z."""

    def residual(self, base: Tensor, layer: int, pairs: Tensor, positions: Tensor) -> Tensor:
        """Logits [pair, output] with the residual stream entering ``layer`` taken from the source at one position a pair."""

    def head(self, base: Tensor, layer: int, head: int) -> Tensor:
        """Logits [pair, output] with one head's z taken from the source at all positions."""


def open_neox(directory: Path, attention: str = "sdpa") -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(directory, attn_implementation=attention).eval()


class PlainHooks:
    """A loop over PyTorch hooks on the Hugging Face model with fused attention."""

    def __init__(self, directory: Path) -> None:
        self.model = open_neox(directory)
        self.layers = self.model.gpt_neox.layers
        self.n_heads = self.model.config.num_attention_heads

    def run(self, tokens: Tensor) -> Tensor:
        return self.model(tokens, use_cache=False, logits_to_keep=1).logits[:, -1]

    def take_from(self, source: Tensor) -> None:
        self.stream: list[Tensor] = []
        self.z: list[Tensor] = []
        hooks = [layer.register_forward_pre_hook(lambda _, args: self.stream.append(args[0])) for layer in self.layers]
        hooks += [
            layer.attention.dense.register_forward_pre_hook(lambda _, args: self.z.append(args[0]))
            for layer in self.layers
        ]
        self.run(source)
        for hook in hooks:
            hook.remove()

    def residual(self, base: Tensor, layer: int, pairs: Tensor, positions: Tensor) -> Tensor:
        rows, source = torch.arange(len(pairs)), self.stream[layer]

        def patch(_: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            stream = args[0].clone()
            stream[rows, positions] = source[pairs, positions]
            return (stream, *args[1:])

        hook = self.layers[layer].register_forward_pre_hook(patch)
        logits = self.run(base[pairs])
        hook.remove()
        return logits

    def head(self, base: Tensor, layer: int, head: int) -> Tensor:
        source = self.z[layer].unflatten(-1, (self.n_heads, -1))

        def patch(_: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            z = args[0].clone()
            z.unflatten(-1, (self.n_heads, -1))[:, :, head] = source[:, :, head]
            return (z,)

        hook = self.layers[layer].attention.dense.register_forward_pre_hook(patch)
        logits = self.run(base)
        hook.remove()
        return logits


class TransformerLens:
    """TransformerLens 4: its bridge over the Hugging Face model, ``run_with_cache`` and ``run_with_hooks``."""

    def __init__(self, directory: Path) -> None:
        from transformer_lens.model_bridge import TransformerBridge

        self.model = TransformerBridge.boot_transformers(str(directory), device="cpu")
        self.n_layers = self.model.cfg.n_layers

    def take_from(self, source: Tensor) -> None:
        names = [
            f"blocks.{layer}.{hook}" for layer in range(self.n_layers) for hook in ("hook_resid_pre", "attn.hook_z")
        ]
        _, self.cache = self.model.run_with_cache(source, names_filter=names)

    def residual(self, base: Tensor, layer: int, pairs: Tensor, positions: Tensor) -> Tensor:
        name, rows = f"blocks.{layer}.hook_resid_pre", torch.arange(len(pairs))

        def patch(stream: Tensor, hook: Any) -> Tensor:
            stream = stream.clone()
            stream[rows, positions] = self.cache[name][pairs, positions]
            return stream

        return self.model.run_with_hooks(base[pairs], fwd_hooks=[(name, patch)])[:, -1]

    def head(self, base: Tensor, layer: int, head: int) -> Tensor:
        name = f"blocks.{layer}.attn.hook_z"

        def patch(z: Tensor, hook: Any) -> Tensor:
            z = z.clone()
            z[:, :, head] = self.cache[name][:, :, head]
            return z

        return self.model.run_with_hooks(base, fwd_hooks=[(name, patch)])[:, -1]


class NNsight:
    """nnsight 0.8 traces over the Hugging Face model with fused attention."""

    def __init__(self, directory: Path) -> None:
        import nnsight

        self.nnsight = nnsight
        self.model = nnsight.TransformersModel(
            str(directory), task="text-generation", attn_implementation="sdpa", dispatch=True
        )
        self.layers = self.model.gpt_neox.layers
        self.n_heads = self.model.config.num_attention_heads

    def take_from(self, source: Tensor) -> None:
        layers, nnsight = self.layers, self.nnsight
        with self.model.trace(source):
            stream, z = [], []
            for layer in layers:
                stream.append(layer.input)
                z.append(layer.attention.dense.input)
            kept = nnsight.save((stream, z))
        self.stream, self.z = kept

    def residual(self, base: Tensor, layer: int, pairs: Tensor, positions: Tensor) -> Tensor:
        rows, position, lm_head, nnsight = (
            torch.arange(len(pairs)),
            self.layers[layer],
            self.model.lm_head,
            self.nnsight,
        )
        source = self.stream[layer][pairs, positions]
        with self.model.trace(base[pairs]):
            stream = position.input.clone()
            stream[rows, positions] = source
            position.input = stream
            logits = nnsight.save(lm_head.output[:, -1])
        return logits

    def head(self, base: Tensor, layer: int, head: int) -> Tensor:
        dense, lm_head, nnsight = self.layers[layer].attention.dense, self.model.lm_head, self.nnsight
        shape = (self.n_heads, -1)
        source = self.z[layer].unflatten(-1, shape)[:, :, head]
        with self.model.trace(base):
            z = dense.input.clone()
            z.unflatten(-1, shape)[:, :, head] = source
            dense.input = z
            logits = nnsight.save(lm_head.output[:, -1])
        return logits


class Pyvene:
    """pyvene 0.1.8: vanilla interventions with source representations that were collected once."""

    def __init__(self, directory: Path) -> None:
        self.plain = PlainHooks(directory)
        self.models: dict[tuple[str, int], Any] = {}

    def intervenable(self, component: str, unit: str, layer: int) -> Any:
        import pyvene

        if (component, layer) not in self.models:
            position = {
                "layer": layer,
                "component": component,
                "unit": unit,
                "intervention_type": pyvene.VanillaIntervention,
            }
            self.models[component, layer] = pyvene.IntervenableModel([position], model=self.plain.model)
        return self.models[component, layer]

    def take_from(self, source: Tensor) -> None:
        self.plain.take_from(source)

    def residual(self, base: Tensor, layer: int, pairs: Tensor, positions: Tensor) -> Tensor:
        model = self.intervenable("block_input", "pos", layer)
        source = self.plain.stream[layer][pairs, positions][:, None]  # [pair, 1, d_model]
        return self.intervene(model, base[pairs], source, positions[:, None].tolist())

    def head(self, base: Tensor, layer: int, head: int) -> Tensor:
        model = self.intervenable("head_attention_value_output", "h", layer)
        z = self.plain.z[layer].unflatten(-1, (self.plain.n_heads, -1))  # [pair, position, head, d_head]
        return self.intervene(model, base, z[:, :, head][:, None].contiguous(), [[head]] * len(base))

    def intervene(self, model: Any, base: Tensor, source: Tensor, units: list[list[int]]) -> Tensor:
        key = next(iter(model.interventions))
        _, output = model(
            {"input_ids": base}, unit_locations={"base": [units]}, source_representations={key: source}, use_cache=False
        )
        return output.logits[:, -1]


PEERS = {"plain hooks": PlainHooks, "TransformerLens": TransformerLens, "nnsight": NNsight, "pyvene": Pyvene}
