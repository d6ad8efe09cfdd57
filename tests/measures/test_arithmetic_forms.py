"""The forms of a model against the model itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset

CONFIG = find_preset("assign-add").config


def test_scores_and_answers_follow_from_the_forms():
    """Run by hand: every score of layer 1, and the logits when layer 2's pattern is taken from the model."""
    model = Transformer(CONFIG.model, torch.Generator().manual_seed(3)).double()
    task = CONFIG.task
    tokens = torch.from_numpy(task.sample_batch(np.random.default_rng(0), 3).tokens)
    with torch.no_grad():
        trace = run(model, tokens, read=["L0.scores", "L1.scores", "L0.pattern", "L1.pattern"])
    forms = SumForms.of(model, task)
    table = np.concatenate([forms.numbers, [forms.operator, forms.equals, forms.pad], forms.variables])
    x = table[tokens.numpy()] + forms.positions  # [batch, position, d_model]
    seen = np.tril(np.ones((16, 16), dtype=bool))
    for layer, (qk, ov) in enumerate([(forms.qk1, forms.ov1), (forms.qk2, forms.ov2)]):
        scores = x @ qk @ x.transpose(0, 2, 1)
        np.testing.assert_allclose(scores[:, seen], trace[f"L{layer}.scores"][:, 0].numpy()[:, seen], atol=1e-12)
        x = x + trace[f"L{layer}.pattern"][:, 0].numpy() @ x @ ov
    x = x + forms.mlp(x)
    np.testing.assert_allclose(x @ forms.unembed, trace.logits.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [{"n_layers": 3}, {"n_heads": 2}, {"bias": True}, {"mlp_layers": None}, {"parallel": True}, {"gated": True}],
)
def test_other_shapes_are_refused(change):
    model = Transformer(dataclasses.replace(CONFIG.model, **change))
    with pytest.raises(BindscopeError, match="published shape"):
        SumForms.of(model, CONFIG.task)
