"""AS11 on made datasets: every verdict, and why; the experiment's variants; the figure."""

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.runs.config import override
from bindscope.runs.start import fit_to_start
from bindscope.studies.framework.experiments import all_experiments, plan_cells
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context, NotTestable
from bindscope.studies.symbols.presets import GPT2, GPT2_SMALL
from bindscope.studies.symbols.pretrained.compare import compare_pretrained, conclude_gpt2
from bindscope.studies.symbols.pretrained.define import GPT2_TOKENS, gpt2_experiment
from bindscope.studies.symbols.pretrained.judge import AS11, judge_pretrained
from bindscope.studies.symbols.pretrained.measure import compute_gpt2

SMALL, LARGE = (4, 128, 4), (12, 768, 12)
FROM_SCRATCH = {512: 1.0, 2048: 0.9, 8192: 0.22}
EFFICIENT = {16: 0.9, 32: 0.25, 256: 0.03}


def made(*curves, training_loss: float = 0.01, seeds: int = 3) -> xr.Dataset:
    """A dataset of the experiment, made of (model, shape, tokens, {n: test loss}); seeds scatter by a hundredth."""
    rows = [(model, *shape, tokens, n, loss) for model, shape, tokens, points in curves for n, loss in points.items()]
    names = [f"{model}-{n}-{layers}" for model, layers, _, _, _, n, _ in rows]
    scatter = 1 + 0.01 * np.arange(seeds)
    test = np.array([row[-1] for row in rows])[:, None] * scatter
    losses = np.stack([np.full_like(test, training_loss), test, test], -1)
    splits, steps = ["train", "validation", "test"], [0, 100]
    over_steps = np.stack([np.ones_like(losses), losses], 2)
    labels = {"model": 0, "layers": 1, "width": 2, "heads": 3, "tokens": 4, "n": 5}
    return xr.Dataset(
        {
            "last_loss": (("variant", "seed", "split"), losses),
            "last_accuracy": (("variant", "seed", "split"), np.clip(1 - losses / 2, 0, 1)),
            "split_loss": (("variant", "seed", "step", "split"), over_steps),
            "last_step": (("variant", "seed"), np.full(test.shape, 100.0)),
        },
        {
            "variant": names, "seed": range(seeds), "split": splits, "step": steps,
            **{label: ("variant", [row[position] for row in rows]) for label, position in labels.items()},
        },
        {"preset": "templates-gpt2-small", "title": "experiment gpt2"},
    )  # fmt: skip


def judge(dataset: xr.Dataset):
    return judge_pretrained({"gpt2": dataset})


def test_the_papers_own_numbers_replicate():
    finding = judge(made(("scratch", LARGE, 0, FROM_SCRATCH), ("pretrained", LARGE, GPT2_TOKENS, EFFICIENT)))
    assert finding.verdict == "replicates"
    ratio = next(quantity for quantity in finding.quantities if "times fewer" in quantity.label)
    assert ratio.value > 100
    assert ratio.low is not None
    assert {quantity.label for quantity in finding.control} == {
        "largest loss on training sequences, from scratch", "largest loss on training sequences, pretrained",
    }  # fmt: skip


def test_a_pretrained_model_that_needs_as_many_sequences_differs():
    scratch = {32: 1.0, 64: 0.4, 128: 0.1}
    finding = judge(made(("scratch", LARGE, 0, scratch), ("pretrained", LARGE, GPT2_TOKENS, {32: 0.9, 64: 0.3})))
    assert finding.verdict == "differs"
    assert "does not need 4 times fewer" in finding.reason


def test_a_model_that_was_trained_too_short_is_no_evidence():
    curves = ("scratch", LARGE, 0, FROM_SCRATCH), ("pretrained", LARGE, GPT2_TOKENS, EFFICIENT)
    finding = judge(made(*curves, training_loss=0.6))
    assert finding.verdict == "differs"
    assert "its control is not" in finding.reason
    assert "has not learned its training sequences" in finding.reason


@pytest.mark.parametrize(
    ("curves", "said"),
    [
        ([("scratch", SMALL, 0, FROM_SCRATCH)], "No pretrained GPT-2 was trained"),
        (
            [("scratch", SMALL, 0, FROM_SCRATCH), ("pretrained", SMALL, 1024, EFFICIENT)],
            "stand-in: they know 1,024 tokens and not GPT-2's 50,257",
        ),
        (
            [("scratch", SMALL, 0, FROM_SCRATCH), ("pretrained", LARGE, GPT2_TOKENS, EFFICIENT)],
            "No GPT-2 of 12 layers of 768 was trained from scratch",
        ),
        (
            [("scratch", LARGE, 0, {32: 1.0, 64: 0.9}), ("pretrained", LARGE, GPT2_TOKENS, {32: 0.9, 64: 0.4})],
            "outside the n that were trained",
        ),
        (
            [("scratch", LARGE, 0, {32: 1.0, 64: 0.9}), ("pretrained", LARGE, GPT2_TOKENS, {32: 0.9, 64: 0.6})],
            "outside the n that were trained",
        ),
    ],
)
def test_without_gpt2s_own_weights_nothing_can_be_said(curves, said):
    finding = judge(made(*curves))
    assert finding.verdict == "not testable"
    assert said in finding.reason
    assert finding.quantities  # what was measured is told nevertheless


def test_a_pretrained_model_that_never_gets_there_differs():
    scratch = {32: 1.0, 64: 0.4, 128: 0.1}
    finding = judge(made(("scratch", LARGE, 0, scratch), ("pretrained", LARGE, GPT2_TOKENS, {32: 0.9, 128: 0.8})))
    assert finding.verdict == "differs"


def test_losses_are_told_at_the_largest_n_that_both_were_trained_with():
    finding = judge(
        made(("scratch", SMALL, 0, {32: 2.0, 64: 1.9, 128: 1.8}), ("pretrained", SMALL, 99, {16: 1.0, 64: 0.6}))
    )
    told = {quantity.label: quantity for quantity in finding.quantities}
    assert not any("times fewer" in label for label in told)  # neither reaches half loss
    assert told["scratch, test loss at n = 64"].value == pytest.approx(1.9 * 1.01)
    stand_in = told["stand-in, test loss at n = 64"]
    assert stand_in.low < 0.606 < stand_in.high
    assert stand_in.n == 3


def test_only_models_of_one_shape_are_compared():
    dataset = made(
        ("scratch", SMALL, 0, {32: 0.2}), ("scratch", LARGE, 0, FROM_SCRATCH), ("pretrained", LARGE, 50257, EFFICIENT)
    )
    comparison = compare_pretrained(dataset)
    assert comparison.scratch.n == pytest.approx(half_loss(2048, 0.909, 8192, 0.2222), rel=1e-6)
    assert comparison.ratio[0] == pytest.approx(comparison.scratch.n / comparison.pretrained.n)


def half_loss(n_before, before, n_after, after):
    """Interpolated in log n, by hand."""
    way = (before - 0.5) / (before - after)
    return n_before * (n_after / n_before) ** way


def test_the_answer_names_a_stand_in_as_one():
    text = conclude_gpt2(made(("scratch", SMALL, 0, FROM_SCRATCH), ("pretrained", SMALL, 1024, EFFICIENT)))
    assert "From scratch as GPT-2 is drawn, 4 layers of 128: half loss at n = " in text
    assert "they stand in for it" in text
    assert "stand in" not in conclude_gpt2(made(("pretrained", LARGE, GPT2_TOKENS, EFFICIENT)))


def test_the_figure_shows_the_papers_points_beside_ours():
    dataset = made(
        ("scratch", SMALL, 0, {32: 1.9, 256: 1.5}), ("torch-start", SMALL, 0, {32: 1.1, 256: 0.9}),
        ("pretrained", SMALL, 1024, EFFICIENT),
    )  # fmt: skip
    figure = AS11.draw({"gpt2": dataset})
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert list(lines["the paper's GPT-2, pretrained"].get_ydata()) == [0.25, 0.03]
    assert list(lines["the paper's GPT-2, from scratch"].get_xdata()) == [8192]
    np.testing.assert_allclose(lines["from scratch (4 layers of 128)"].get_ydata(), [1.9 * 1.01, 1.5 * 1.01])
    assert any("stand-in" in label for label in lines)


def test_no_dataset_is_told_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", tmp_path)
    with pytest.raises(NotTestable, match="bindscope experiment gpt2 --pretrained DIR"):
        compute_gpt2(Context(None, runs_directory=tmp_path))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    shape = ModelConfig(600, 8, n_layers=2, n_heads=2, d_model=16, d_head=8, d_mlp=64, positions="learned", tied=True)
    return export_hugging_face(Transformer(shape), tmp_path_factory.mktemp("gpt2") / "out").directory


def test_a_directory_adds_its_curve_and_the_same_shape_from_scratch(directory):
    assert not any(variant.labels["model"] == "pretrained" for variant in all_experiments()["gpt2"].variants)
    experiment = gpt2_experiment(directory)
    found = [variant for variant in experiment.variants if variant.labels["model"] == "pretrained"]
    assert [variant.labels["n"] for variant in found] == [16, 32, 64]  # 600 tokens are too few for more
    assert {variant.labels["tokens"] for variant in found} == {600}
    assert any(variant.name == "scratch-256-2x16" and variant.full for variant in experiment.variants)
    for cell in plan_cells(experiment, [0], ["pretrained-32"]):
        assert fit_to_start(cell.config) == cell.config
        assert cell.config.model.activation == "gelu"


@pytest.mark.parametrize(("name", "shape"), [("templates-gpt2-small", GPT2_SMALL), ("templates-gpt2", GPT2)])
def test_presets_are_gpt2s(name, shape):
    model = find_preset(name).config.model
    assert {size: getattr(model, size) for size in shape} == shape
    assert model.causal
    assert model.positions == "learned"
    assert model.activation == "gelu_tanh"
    assert not model.tied
    assert override(find_preset(name).config, {"task.name": "copy", "model.tied": True, "model.d_out": None}).model.tied


def test_a_preset_takes_the_shape_of_the_directory(directory):
    config = fit_to_start(
        override(
            find_preset("templates-gpt2").config,
            {"task.alphabet": 32, "training.batch_size": 32, "start.directory": str(directory)},
        )
    )
    assert (config.model.n_layers, config.model.d_model) == (2, 16)
    with pytest.raises(BindscopeError, match="embeddings for 600 tokens"):
        fit_to_start(override(find_preset("templates-gpt2").config, {"start.directory": str(directory)}))
