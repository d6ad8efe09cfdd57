"""Direct contributions: they add up, they are what removing a part takes away, and a known circuit has known ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.binding.contributions import logit_contributions
from bindscope.measures.evaluation import read_answers
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import LOGIT, construct_dereferencer

TASK = BindingTask(lines=5, max_depth=2)
BATCH = TASK.sample_evaluation(np.random.default_rng(0), 30)["test"]


def random_model(**changes) -> Transformer:
    config = {"d_vocab": 40, "n_positions": TASK.n_positions, "n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 8}
    model = Transformer(ModelConfig(**{**config, "d_mlp": 16, **changes}), torch.Generator().manual_seed(1))
    with torch.no_grad():
        for index, weight in enumerate(
            model.parameters()
        ):  # no bias, scale or identity-scaling term may stay at its start
            weight += 0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(index))
    return model.eval()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "none"},
        {"bias": False, "positions": "learned"},
        {"identity_qk": True, "identity_vo": True, "identity_gain": 2.0},
        {"mlp_layers": (1,), "positions": "normal", "tied": True},
        {"positions": "none", "causal": False, "mlp_layers": ()},
        {"parallel": True},
        {"norm": "rms", "norm_epsilon": 0.1, "gated": True, "n_kv_heads": 1},
    ],
)
def test_contributions_add_up_to_the_logit_above_the_digits_mean(changes):
    model = random_model(**changes)
    parts = logit_contributions(model, BATCH)
    logits, rows = read_answers(model, BATCH).astype(float), np.arange(len(BATCH))
    expected = [
        logits[rows, chosen] - logits[:, :10].mean(1)
        for chosen in (BATCH.targets[:, 0], BATCH.labels["rule_line_1"][:, 0])
    ]
    np.testing.assert_allclose(parts.contribution.sum("component"), expected, atol=1e-4)
    np.testing.assert_allclose(parts.logit, expected, atol=1e-4)
    has_identity = model.config.identity_vo
    assert bool(np.any(parts.identity_path.values)) is has_identity


@pytest.mark.parametrize("site", ["L1.H0.result", "L1.H1.result", "L1.mlp_out"])
def test_without_a_norm_a_last_part_contributes_what_removing_it_takes_away(site):
    head = {"mlp_layers": (0,)} if "result" in site else {}
    model = random_model(norm="none", identity_vo=True, identity_qk=True, **head)
    parts = logit_contributions(model, BATCH)
    with torch.no_grad():
        tokens = torch.from_numpy(BATCH.tokens)
        before = run(model, tokens).logits[:, -1].double().numpy()
        after = run(model, tokens, write={site: torch.zeros_like}).logits[:, -1].double().numpy()
    taken, rows = before - after, np.arange(len(BATCH))
    expected = taken[rows, BATCH.targets[:, 0]] - taken[:, :10].mean(1)
    name = site.removesuffix(".result").replace("mlp_out", "mlp")
    np.testing.assert_allclose(parts.contribution.sel(candidate="answer", component=name), expected, atol=1e-4)


def test_the_identity_path_is_what_is_lost_without_it():
    model = random_model(norm="none", identity_vo=True, mlp_layers=(0,))
    whole = logit_contributions(model, BATCH).sel(component="L1.H1")
    with torch.no_grad():
        model.layers[1].attention.identity_b[1] = 0
    without = logit_contributions(model, BATCH).sel(component="L1.H1")
    np.testing.assert_allclose(whole.contribution - without.contribution, whole.identity_path, atol=1e-5)
    assert np.abs(without.identity_path).max() < 1e-5


def test_in_the_constructed_model_one_head_writes_the_whole_answer():
    parts = logit_contributions(construct_dereferencer(5, 2), BATCH).contribution.sel(candidate="answer")
    np.testing.assert_allclose(parts.sel(component="L3.H0"), LOGIT * 9 / 10, atol=1e-4)
    assert np.abs(parts.drop_sel(component="L3.H0")).max() < 1e-4


def test_other_families_are_refused():
    batch = next(iter(AssignAddTask().sample_evaluation(np.random.default_rng(0), 4).values()))
    with pytest.raises(BindscopeError, match="binding programs only"):
        logit_contributions(random_model(), batch)
