"""Patch grids agree with what other libraries find on the exported model, cell by cell."""

import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from bindscope.interventions.columns import residual_columns
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.replacement import patch_heads
from interop.exported import make_exported
from model.test_transformer import random_tokens

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from patching_peers import PEERS

MODULES = {
    "plain hooks": "transformers",
    "TransformerLens": "transformer_lens",
    "nnsight": "nnsight",
    "pyvene": "pyvene",
}


@pytest.mark.parametrize("name", PEERS)
@torch.no_grad()
def test_every_peer_finds_the_same(name, tmp_path):
    pytest.importorskip(MODULES[name])
    model = make_exported(tmp_path / "out", {})
    base, source = random_tokens(4, 7), random_tokens(4, 7, seed=9)
    source[:, :2] = base[:, :2]
    contrast = Contrast(base, source, torch.zeros(4, dtype=torch.long), torch.ones(4, dtype=torch.long), 6)
    peer = PEERS[name](tmp_path / "out")
    peer.take_from(source)
    for found in residual_columns(model, contrast):
        for layer in range(model.config.n_layers):
            theirs = peer.residual(base, layer, found.pairs, found.positions)
            assert_close(theirs, found.logits[layer])
    for part in patch_heads(model, contrast):
        for layer in range(model.config.n_layers):
            for head in range(model.config.n_heads):
                assert_close(peer.head(base, layer, head)[part.pairs], part.logits[layer, head])


def assert_close(theirs, ours):
    """To 1e-5 of the largest logit."""
    torch.testing.assert_close(theirs, ours, atol=1e-5 * max(1.0, ours.abs().max().item()), rtol=0)
