"""Every cell of a fast grid against a whole run of the model with that one change, and identities of patching."""

import weakref
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.interventions import chunks, columns, engine, replacement
from bindscope.interventions.columns import residual_columns, site_layers
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.engine import run_changed, run_rest, run_whole
from bindscope.interventions.grids import head_grid, mlp_grid, position_grid, residual_grid
from bindscope.interventions.metrics import METRICS
from bindscope.interventions.replacement import replace_heads, replace_mlps
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from interventions.naive import naive_logits, naive_outcomes, only

SITES = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
N_POSITIONS = 8


@st.composite
def configs(draw):
    n_layers, n_heads = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 3, 4]))
    return ModelConfig(
        d_vocab=9,
        n_positions=N_POSITIONS,
        d_out=draw(st.sampled_from([None, 5])),
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=draw(st.none() | st.sampled_from([n for n in (1, 2) if n_heads % n == 0])),
        d_model=draw(st.sampled_from([8, 16])),
        d_head=draw(st.sampled_from([4, 8])),
        d_mlp=12,
        causal=draw(st.booleans()),
        positions=draw(st.sampled_from(["rope", "rope", "learned", "normal", "none"])),
        rope_fraction=draw(st.sampled_from([0.5, 1.0])),
        norm=draw(st.sampled_from(["layer", "layer", "rms", "none"])),
        norm_epsilon=draw(st.sampled_from([1e-5, 0.2])),
        parallel=draw(st.booleans()),
        bias=draw(st.booleans()),
        activation=draw(st.sampled_from(["gelu", "relu", "silu"])),
        gated=draw(st.booleans()),
        mlp_layers=draw(st.none() | st.sets(st.integers(0, n_layers - 1), min_size=1).map(tuple)),
        identity_qk=draw(st.booleans()),
        identity_vo=draw(st.booleans()),
        init=InitConfig(scheme="fan_in", gain=1.5),
    )


def make_model(config, seed=0):
    """All parameters are moved, so that biases, LayerNorms and identity scalars matter."""
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(config, generator).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.double)
    return model


def make_contrast(config, seed=0, n_pairs=5, at=N_POSITIONS - 2):
    """Pairs that differ in one token, in several, or in all of them; two share their first difference."""
    generator = torch.Generator().manual_seed(seed)
    base = torch.randint(0, config.d_vocab, (n_pairs, N_POSITIONS), generator=generator)
    changes = torch.randint(1, config.d_vocab, base.shape, generator=generator)
    where = torch.zeros_like(base, dtype=torch.bool)
    for pair, columns_ in enumerate([[3], [2, 5], list(range(N_POSITIONS)), [3], [at, N_POSITIONS - 1]][:n_pairs]):
        where[pair, columns_] = True
    source = torch.where(where, (base + changes) % config.d_vocab, base)
    answers = torch.randint(0, config.outputs, (n_pairs,), generator=generator)
    others = torch.randint(1, config.outputs, (n_pairs,), generator=generator)
    return Contrast(base, source, answers, (answers + others) % config.outputs, at)


def assert_same_outcomes(grid, expected, mask=None):
    for name in METRICS:
        wanted = expected[name] if mask is None else np.where(mask, expected[name], np.nan)
        np.testing.assert_allclose(grid[name].values, wanted, atol=1e-6, rtol=1e-5, err_msg=name)


@contextmanager
def saving_everything(really=True, together=False):
    """As for large models: nothing is computed twice to have fewer calls, unless near positions are swept ``together``."""
    worth = -1 if really else engine.WORTH_SAVING
    free, far = (0, worth) if really and not together else (chunks.FREE_TOKENS, chunks.WORTH_SAVING)
    with (
        patch.object(engine, "WORTH_SAVING", worth),
        patch.object(chunks, "WORTH_SAVING", far),
        patch.object(chunks, "FREE_TOKENS", free),
    ):
        yield


def everywhere(contrast):
    return torch.ones_like(contrast.base, dtype=torch.bool)


SMALL = ModelConfig(
    d_vocab=9, n_positions=N_POSITIONS, n_layers=3, n_heads=2, d_model=8, d_head=4, d_mlp=12, init=InitConfig("fan_in")
)


@settings(max_examples=24)
@given(configs(), st.sampled_from(SITES), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 99))
def test_every_cell_of_a_residual_grid_is_a_whole_run(config, site, other_source, saving, together, seed):
    if site == "resid_mid" and config.parallel:
        with pytest.raises(BindscopeError, match="work in parallel"):
            residual_grid(make_model(config), make_contrast(config), site=site)
        return
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    source_model = make_model(config, seed + 1) if other_source else None
    expected = torch.stack(
        [
            naive_logits(model, contrast, sites_of(model, site), only(position, contrast), source_model)
            for position in range(N_POSITIONS)
        ],
        1,
    )  # [layer, position, pair, output]
    with saving_everything(saving, together):
        grid = residual_grid(model, contrast, site=site, source_model=source_model)
    assert grid.success.dims == ("layer", "position", "pair")
    assert_same_outcomes(grid, naive_outcomes(model, contrast, expected, source_model))
    for found in residual_columns(model, contrast, site, None, source_model):
        torch.testing.assert_close(found.logits, expected[:, found.positions, found.pairs], atol=1e-8, rtol=1e-6)


@settings(max_examples=15)
@given(configs(), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 99))
def test_every_cell_of_a_head_or_mlp_grid_is_a_whole_run(config, other_source, marked, saving, seed):
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    source_model = make_model(config, seed + 1) if other_source else None
    marks = everywhere(contrast)
    if marked:
        marks = torch.rand(marks.shape, generator=torch.Generator().manual_seed(seed)) < 0.3
    at_positions = marks.numpy() if marked else None
    sites = [[f"L{layer}.H{head}.result" for head in range(config.n_heads)] for layer in range(config.n_layers)]
    expected = torch.stack([naive_logits(model, contrast, row, marks, source_model) for row in sites])
    with saving_everything(saving):
        grid = head_grid(model, contrast, at_positions=at_positions, source_model=source_model)
    assert grid.success.dims == ("layer", "head", "pair")
    assert_same_outcomes(grid, naive_outcomes(model, contrast, expected, source_model))
    expected = naive_logits(model, contrast, sites_of(model, "mlp_out"), marks, source_model)
    grid = mlp_grid(model, contrast, at_positions=at_positions, source_model=source_model)
    assert_same_outcomes(grid, naive_outcomes(model, contrast, expected, source_model))


def sites_of(model, site):
    return [f"L{layer}.{site}" for layer in site_layers(model, site)]


@settings(max_examples=8)
@given(configs(), st.integers(0, 99))
def test_replaced_heads_and_mlps_are_whole_runs(config, seed):
    """With zeros, with a mean of any shape that broadcasts, and with what other rows have."""
    model, tokens, at = make_model(config, seed), make_contrast(config, seed).base, N_POSITIONS - 2
    n_kept = at + 1 if config.causal else N_POSITIONS
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(config.n_layers, config.n_heads, config.d_model, generator=generator, dtype=torch.double)
    names = [f"L{layer}.result" for layer in range(config.n_layers)]
    seen = run(model, tokens, read=names)
    others = torch.stack([seen[name].detach().roll(1, 0) for name in names])[:, :, :n_kept]
    choices = [
        lambda layer, rows: torch.zeros((), dtype=torch.double),
        lambda layer, rows: means[layer],
        lambda layer, rows: others[layer, rows],
    ]
    for choose in choices:
        logits = replace_heads(model, tokens, at, choose)
        layer, head = config.n_layers // 2, config.n_heads - 1
        value = choose(layer, torch.arange(len(tokens))).expand(len(tokens), n_kept, config.n_heads, config.d_model)

        def edit(old, value=value, head=head):
            new = old.clone()
            new[:, :n_kept] = value[:, :, head]
            return new

        expected = run(model, tokens, write={f"L{layer}.H{head}.result": edit}).logits[:, at]
        torch.testing.assert_close(logits[layer, head], expected, check_dtype=False, atol=1e-6, rtol=1e-5)
    logits = replace_mlps(model, tokens, at, lambda layer, rows: torch.zeros((), dtype=torch.double))
    for row, layer in enumerate(site_layers(model, "mlp_out")):
        expected = run(model, tokens, write={f"L{layer}.mlp_out": torch.zeros_like}).logits[:, at]
        torch.testing.assert_close(logits[row], expected, check_dtype=False, atol=1e-6, rtol=1e-5)


@settings(max_examples=6)
@given(configs(), st.integers(0, 99))
def test_wanted_cells_are_those_of_the_whole_grid(config, seed):
    model, contrast = make_model(config, seed), make_contrast(config, seed)
    with saving_everything():
        whole = residual_grid(model, contrast)
    wanted = np.random.default_rng(seed).random(tuple(contrast.base.shape)) < 0.4
    assert_same_outcomes(residual_grid(model, contrast, wanted=wanted), whole, wanted.T)
    positions = {"start": np.zeros(5, dtype=int), "some": np.array([3, -1, 6, 4, -1])}
    grid = position_grid(model, contrast, positions)
    assert grid.success.dims == ("layer", "position", "pair")
    for name in METRICS:
        for pair, position in enumerate(positions["some"]):
            expected = whole[name].values[:, position, pair] if position >= 0 else np.nan
            np.testing.assert_allclose(grid[name].sel(position="some").values[:, pair], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(grid[name].sel(position="start"), whole[name].sel(position=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"identity_qk": True, "identity_vo": True}, {"causal": False}])
def test_memory_bounds_do_not_change_numbers(changes, monkeypatch):
    config = replace(SMALL, **changes)
    model, contrast = make_model(config), make_contrast(config)
    grids = [residual_grid, head_grid, mlp_grid]
    whole = [grid(model, contrast) for grid in grids]
    monkeypatch.setattr(chunks, "KEPT_BYTES", 1)
    monkeypatch.setattr(chunks, "FEWEST_PAIRS", 1)
    for module in (columns, replacement):
        monkeypatch.setattr(module, "tokens_at_once", lambda model: 1)
    for grid, expected in zip(grids, whole):
        assert_same_outcomes(grid(model, contrast), expected)


def test_a_gpu_takes_as_much_at_once_as_its_free_memory_holds(monkeypatch):
    model, contrast = make_model(SMALL), make_contrast(SMALL)
    whole = residual_grid(model, contrast)
    few = chunks.pairs_at_once(model, N_POSITIONS, ()), chunks.tokens_at_once(model)
    monkeypatch.setattr(chunks, "free_memory", lambda device: 8 * 2**30)
    many = chunks.pairs_at_once(model, N_POSITIONS, ()), chunks.tokens_at_once(model)
    assert many[0] > few[0]
    assert few[1] < many[1] <= chunks.MOST_TOKENS
    assert_same_outcomes(residual_grid(model, contrast), whole)
    monkeypatch.setattr(chunks, "free_memory", lambda device: 0)
    assert (chunks.pairs_at_once(model, N_POSITIONS, ()), chunks.tokens_at_once(model)) == (chunks.FEWEST_PAIRS, 2048)


@pytest.mark.parametrize("grid", [residual_grid, head_grid, mlp_grid])
def test_the_runs_of_some_pairs_are_let_go_before_the_next_are_run(grid, monkeypatch):
    monkeypatch.setattr(chunks, "pairs_at_once", lambda *_: 2)
    run_chunk, runs = chunks._run_chunk, []

    def watch(*arguments):
        assert [run() for run in runs] == [None] * len(runs)
        chunk = run_chunk(*arguments)
        runs.extend([weakref.ref(chunk.base), weakref.ref(chunk.source)])
        return chunk

    monkeypatch.setattr(chunks, "_run_chunk", watch)
    grid(make_model(SMALL), make_contrast(SMALL))
    assert len(runs) == 2 * 3


def test_free_memory_is_asked_of_the_device_that_computes(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (5 * 2**30, 2**33))
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 3 * 2**30)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 2**30)
    assert chunks.free_memory(torch.device("cuda", 0)) == 5 * 2**30
    assert chunks.free_memory(torch.device("mps")) == 2 * 2**30
    assert chunks.free_memory(torch.device("cpu")) is None


def test_cells_that_cannot_differ_are_the_base_run():
    model, contrast = make_model(SMALL), make_contrast(SMALL)
    grid = residual_grid(model, contrast)
    assert not grid.kl.sel(pair=0, position=[0, 1, 2]).any()  # before the first difference
    assert not grid.kl.sel(pair=0, position=[4, 5, 6], layer=0).any()  # the same tokens
    assert not grid.kl.sel(position=N_POSITIONS - 1).any()  # after the asked column
    assert (grid.kl.sel(pair=0, position=[3, 6], layer=[1, 2]) > 1e-6).all()


def test_cells_that_cannot_differ_are_not_computed(monkeypatch):
    model, contrast = make_model(SMALL), make_contrast(SMALL).take(torch.tensor([0, 3]))
    swept = []

    def count(kept, first, starts, rows):
        swept.append((first, starts[1].shape[1], sorted(starts)))
        return run_changed(kept, first, starts, rows)

    monkeypatch.setattr(columns, "run_changed", count)
    residual_grid(model, contrast)
    assert swept == [(3, 8, [1, 2])]  # two pairs at four positions, together
    swept.clear()
    with saving_everything():
        residual_grid(model, contrast)
    assert swept == [(position, 2, [1, 2]) for position in (3, 4, 5, 6)]


def test_early_columns_come_before_the_others_however_many_workers_there_are():
    model, contrast = make_model(SMALL), make_contrast(SMALL)
    early = torch.zeros_like(contrast.base, dtype=torch.bool)
    early[:, 5] = True
    with saving_everything():
        plain = list(residual_columns(model, contrast))
        alone, shared = (list(residual_columns(model, contrast, early=early, n_workers=n)) for n in (1, 3))
    order = [found.positions.unique().tolist() for found in alone]
    n_early = order.count([5])
    assert n_early
    assert order[1 : 1 + n_early] == [[5]] * n_early  # after those that nothing changes
    assert len(order) > 1 + n_early
    for one, other in zip(alone, shared, strict=True):
        for name in ("pairs", "positions", "logits"):
            assert torch.equal(getattr(one, name), getattr(other, name))
    cells = [
        torch.cat([found.logits for found in each], 1)[:, torch.cat([_number(found) for found in each]).argsort()]
        for each in (plain, alone)
    ]
    torch.testing.assert_close(cells[0], cells[1])


def _number(found):
    return found.pairs * N_POSITIONS + found.positions


def test_changing_the_only_token_that_differs_gives_the_source_run():
    model, contrast = make_model(SMALL), make_contrast(SMALL)
    grid = residual_grid(model, contrast).sel(layer=0, position=3, pair=[0, 3])
    np.testing.assert_allclose(grid.logit_difference, 1, atol=1e-6)


@pytest.mark.parametrize("changes", [{}, {"identity_vo": True}, {"norm": "none", "bias": False}])
def test_the_rest_of_a_run_is_the_run(changes):
    config = replace(SMALL, **changes)
    model, contrast = make_model(config), make_contrast(config).take(torch.tensor([0, 3]))
    also = ("middle", "z")
    kept, whole = (run_whole(model, tokens, contrast.at, also) for tokens in (contrast.base, contrast.source))
    rest = run_rest(kept, contrast.source, 3, also)
    torch.testing.assert_close(rest.logits, whole.logits)
    torch.testing.assert_close(rest.stream, whole.stream[:, :, 3:])
    for name in ("middle", "z", *(["scaled"] if config.identity_vo else [])):
        ours, expected = getattr(rest, name), getattr(whole, name)[:, :, 3:]
        torch.testing.assert_close(ours[:-1], expected[:-1])
        torch.testing.assert_close(ours[-1][:, -1], expected[-1][:, -1])


def test_streams_that_are_not_changed_give_the_kept_run():
    """However they are given: all positions from the first on, or a few of them; in every layer and behind the last."""
    model, contrast = make_model(SMALL), make_contrast(SMALL)
    kept = run_whole(model, contrast.base, contrast.at)
    for width in (1, 2, None):
        starts = {layer: kept.stream[layer][None, :, 2:][:, :, :width] for layer in range(3)} | {
            3: kept.end[None, :, None]
        }
        with saving_everything():
            logits = run_changed(kept, 2, starts)
        torch.testing.assert_close(logits, kept.logits.expand_as(logits))


def test_source_runs_of_both_directions_meet():
    """What noising does to a pair, denoising does to the pair turned round."""
    model, contrast = make_model(SMALL), make_contrast(SMALL)
    turned = Contrast(contrast.source, contrast.base, contrast.source_answers, contrast.base_answers, contrast.at)
    last = contrast.at
    there, back = (
        residual_grid(model, each, site="resid_post").sel(layer=2, position=last) for each in (contrast, turned)
    )
    np.testing.assert_allclose(there.logit_difference, 1, atol=1e-6)
    np.testing.assert_allclose(back.logit_difference, 1, atol=1e-6)


def test_grids_say_what_they_are_made_of():
    model, contrast = make_model(replace(SMALL, identity_vo=True)), make_contrast(SMALL)
    grid = head_grid(model, contrast)
    assert grid.attrs["n_pairs"] == 5
    assert "identity-scaling term" in grid.attrs["remark"]
    assert residual_grid(model, contrast, site="mlp_out").attrs["site"] == "mlp_out"
    assert "remark" not in head_grid(make_model(SMALL), contrast).attrs


@pytest.mark.parametrize("grid", [residual_grid, head_grid, mlp_grid])
def test_progress_ends_with_everything_done(grid):
    steps = []
    grid(make_model(SMALL), make_contrast(SMALL), on_progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1]
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_bad_input_is_refused_in_a_sentence():
    model, contrast = make_model(SMALL), make_contrast(SMALL)
    with pytest.raises(BindscopeError, match=r"no site 'resid'.*resid_pre"):
        residual_grid(model, contrast, site="resid")
    with pytest.raises(BindscopeError, match="5 pairs and 8 positions"):
        residual_grid(model, contrast, wanted=np.ones((5, 3), dtype=bool))
    with pytest.raises(BindscopeError, match="position 'far'"):
        position_grid(model, contrast, {"far": np.full(5, N_POSITIONS)})
    with pytest.raises(BindscopeError, match="no position"):
        position_grid(model, contrast, {})
    with pytest.raises(BindscopeError, match="n_layers is 2"):
        head_grid(model, contrast, source_model=make_model(replace(SMALL, n_layers=2)))
    with pytest.raises(BindscopeError, match="no layer of this model has an MLP"):
        mlp_grid(make_model(replace(SMALL, mlp_layers=())), contrast)
    with pytest.raises(BindscopeError, match=r"model\.eval"):
        head_grid(make_model(replace(SMALL, dropout=0.1)).train(), contrast)
    with pytest.raises(BindscopeError, match="column 9"):
        run_whole(model, contrast.base, 9)
    kept = run_whole(make_model(replace(SMALL, causal=False)), contrast.base, 6)
    with pytest.raises(BindscopeError, match="bidirectional"):
        run_changed(kept, 1, {})


def test_the_asked_column_is_one_of_the_rows() -> None:
    config = ModelConfig(d_vocab=7, n_positions=8, n_layers=2, n_heads=1, d_model=8, d_head=8, d_mlp=16)
    model, contrast = make_model(config, 0), make_contrast(config, 0)
    n_columns = contrast.base.shape[1]
    for at in (-1, n_columns):
        with pytest.raises(
            BindscopeError, match=rf"column {at} was asked for; the rows have columns 0 to {n_columns - 1}"
        ):
            run_whole(model, contrast.base, at)
    assert run_whole(model, contrast.base, n_columns - 1).logits.shape[0] == len(contrast)
