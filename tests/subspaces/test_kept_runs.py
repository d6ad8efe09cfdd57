"""Swaps and rotations that go on from kept base runs against whole runs of the model for each."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import xarray as xr

from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.subspaces import Search, find_columns, learn_rotation, random_subspace, read_stream, sweep_subspaces
from bindscope.subspaces import stream as stream_module
from bindscope.subspaces.rotation import RotationPlan
from bindscope.subspaces.stream import edit_columns, keep_base, run_changed, stream_site
from bindscope.tasks.binding import CounterfactualPairs
from interventions.causal_cases import identity_model, random_model, sample_pairs
from subspaces.test_subspace import generator

MODELS = {
    "plain": random_model,
    "identity scaling": identity_model,
    "bidirectional": lambda: random_model(causal=False),
    "parallel": lambda: random_model(parallel=True),
    "gated": lambda: random_model(gated=True, activation="silu"),
    "learned positions": lambda: random_model(positions="learned"),
    "grouped heads": lambda: random_model(n_heads=4, n_kv_heads=2, norm="rms"),
}
PAIRS = sample_pairs(9)
PLAN = RotationPlan(n_steps=4, batch_size=5)

each_model = pytest.mark.parametrize("build", MODELS.values(), ids=MODELS.keys())
each_position = pytest.mark.parametrize("position", ["query", "rhs 3", "chain", "changed"])


@each_model
@each_position
def test_a_swap_from_kept_runs_equals_a_whole_run(build, position: str) -> None:
    model, columns = build().float(), find_columns(PAIRS, position)
    subspace = random_subspace(model.config.d_model, 5, generator(4))
    for layer in range(model.config.n_layers + 1):
        source, kept = read_stream(model, PAIRS.counterfactual_tokens, layer, columns), keep_base(model, PAIRS, layer)
        assert kept is not None
        for change in (subspace.swap, subspace.swap_rest, lambda base, source: source, lambda base, source: base):
            expected = run_changed(model, PAIRS, layer, columns, source, change)
            found = run_changed(model, PAIRS, layer, columns, source, change, kept)
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@each_model
@each_position
def test_a_rotation_is_learned_as_by_whole_runs(build, position: str) -> None:
    model = build().float()
    for layer in range(model.config.n_layers + 1):
        learned = learn_rotation(model, PAIRS, layer=layer, position=position, rank=3, generator=generator(), plan=PLAN)
        losses, basis = learn_by_whole_runs(model, PAIRS, layer, find_columns(PAIRS, position))
        np.testing.assert_allclose(learned.losses, losses, rtol=1e-3)
        torch.testing.assert_close(learned.subspace.basis, basis, atol=1e-3, rtol=0)


def learn_by_whole_runs(
    model: Transformer, pairs: CounterfactualPairs, layer: int, columns: np.ndarray
) -> tuple[list[float], torch.Tensor]:
    """Distributed alignment search by the book: a whole run of the model for every step."""
    rng, losses = generator(), []
    tokens, wanted = torch.from_numpy(pairs.base_tokens), torch.from_numpy(pairs.counterfactual_answers)
    source = read_stream(model, pairs.counterfactual_tokens, layer, columns)
    free = torch.randn(model.config.d_model, 3, generator=rng).requires_grad_()
    optimizer = torch.optim.Adam([free], lr=PLAN.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, PLAN.n_steps)
    for _ in range(PLAN.n_steps):
        rows = torch.randint(len(pairs), (PLAN.batch_size,), generator=rng)
        basis = torch.linalg.qr(free).Q

        def swap(base, source, basis=basis):
            return base + (source - base) @ basis @ basis.T

        edit = edit_columns(torch.from_numpy(columns)[rows], source[rows], swap)
        at = torch.tensor([pairs.colon_position])
        logits = run(model, tokens[rows], write={stream_site(model, layer): edit}, at=at).logits[:, 0]
        loss = F.cross_entropy(logits, wanted[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, torch.linalg.qr(free.detach().double()).Q.T.float()


def test_a_rotation_that_can_change_nothing_stays_where_it_began() -> None:
    learned = learn_rotation(
        random_model().float(), PAIRS, layer=0, position="query", rank=3, generator=generator(), plan=PLAN
    )
    free = torch.randn(16, 3, generator=generator())
    torch.testing.assert_close(learned.subspace.basis, torch.linalg.qr(free.double()).Q.T.float())


def test_little_memory_gives_the_same_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "KEPT_BYTES", 0)
    assert keep_base(random_model(), PAIRS, 0) is None
    test_a_rotation_is_learned_as_by_whole_runs(identity_model, "chain")


def test_little_memory_gives_the_same_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep() -> xr.Dataset:
        fit, search = sample_pairs(40, seed=1), Search(rank=3)
        return sweep_subspaces(random_model().float(), fit, sample_pairs(12), search, generator(), least_whole=0)

    plenty = sweep()
    monkeypatch.setattr(stream_module, "KEPT_BYTES", 0)
    xr.testing.assert_allclose(plenty, sweep())
