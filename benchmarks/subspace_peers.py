"""Swapping and learning a subspace as others do it, a whole run of one exported GPT-NeoX each time; for ``subspace_swaps.py``.

A peer takes the source's streams once. Its ``Rotation`` then gives the logits of the last column with the part of the stream
along its directions swapped at marked columns, and has parameters to learn. The model's weights are frozen for everyone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor

from patching_peers import PlainHooks


class Rotation(Protocol):
    def parameters(self) -> Iterable[Tensor]:
        """What an optimiser may change."""

    def swap(self, base: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Logits [row, output] of the rows of ``base`` [pair, position], swapped at ``columns`` [row, column], −1 for none."""


class HookedRotation:
    """Directions from a QR decomposition, put in by a PyTorch hook on the Hugging Face model."""

    several_columns = True

    def __init__(self, plain: PlainHooks, layer: int, free: Tensor) -> None:
        self.plain, self.layer = plain, layer
        self.free = free.clone().requires_grad_()

    def parameters(self) -> list[Tensor]:
        return [self.free]

    def swap(self, base: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        row, index = (columns >= 0).nonzero(as_tuple=True)
        column = columns[row, index]
        source = self.plain.stream[self.layer][rows[row], column]
        basis = torch.linalg.qr(self.free).Q

        def patch(_: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            old = args[0][row, column]
            return (args[0].index_put((row, column), old + (source - old) @ basis @ basis.T), *args[1:])

        hook = self.plain.layers[self.layer].register_forward_pre_hook(patch)
        logits = self.plain.run(base[rows])
        hook.remove()
        return logits


class PyveneRotation:
    """pyvene's ``LowRankRotatedSpaceIntervention`` on the stream entering a layer, at one column a row."""

    several_columns = False

    def __init__(self, plain: PlainHooks, layer: int, free: Tensor) -> None:
        import pyvene

        self.plain, self.layer = plain, layer
        config = {
            "layer": layer,
            "component": "block_input",
            "unit": "pos",
            "low_rank_dimension": free.shape[1],
            "intervention_type": pyvene.LowRankRotatedSpaceIntervention,
        }
        self.model = pyvene.IntervenableModel([config], model=plain.model)
        self.key = next(iter(self.model.interventions))
        self.intervention = self.model.interventions[self.key]
        with torch.no_grad():
            self.intervention.rotate_layer.weight = torch.linalg.qr(free).Q

    def parameters(self) -> Iterable[Tensor]:
        return self.intervention.parameters()

    def swap(self, base: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        source = self.plain.stream[self.layer][rows, columns[:, 0]][:, None]  # [row, 1, d_model]
        _, output = self.model(
            {"input_ids": base[rows], "logits_to_keep": 1},
            unit_locations={"base": [columns.tolist()]},
            source_representations={self.key: source},
            use_cache=False,
        )
        return output.logits[:, -1]


PEERS = {"plain hooks": HookedRotation, "pyvene": PyveneRotation}
