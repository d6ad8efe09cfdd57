"""Width and abstract symbols: made-up grids of runs are judged, told and drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from bindscope.measures.stats.ranks import rank_correlation
from bindscope.studies.framework.claims import Finding
from bindscope.studies.framework.experiments import find_experiment
from bindscope.studies.plots.style import save_figure
from bindscope.studies.symbols.width.conclude import conclude_copy, conclude_shape, conclude_width
from bindscope.studies.symbols.width.draw import draw_copy, draw_shape, draw_width
from bindscope.studies.symbols.width.draw_directions import draw_directions
from bindscope.studies.symbols.width.judge import AS8, AS9, judge_copy, judge_width
from bindscope.studies.symbols.width.widths import (
    FirstN,
    choose_heads,
    find_first_n,
    ratio_bounds,
    split_error,
)

SPLITS = ("train", "validation", "test")
SIZES = (8, 16, 32, 64, 128, 256, 512)
WIDTHS = (32, 64, 128, 256, 512)


def made_cells(
    rows: Sequence[Mapping[str, Any]], test: Sequence[Sequence[float]], train: float, accuracy: bool
) -> xr.Dataset:
    """Runs that end with the given test numbers, [variant][seed], and ``train`` on their training sequences."""
    last = np.repeat(np.array(test, float)[..., None], len(SPLITS), axis=-1)
    last[..., 0] = train
    dims = ("variant", "seed", "split")
    cells: dict[str, Any] = {"last_loss": (dims, last)}
    if accuracy:  # best at the second of three evaluations, and half unlearned at the end
        curves = np.stack([0 * last, 1 - last, (1 - last) / 2], 2)
        cells = {
            "last_accuracy": (dims, curves[:, :, -1]),
            "split_accuracy": (("variant", "seed", "step", "split"), curves),
        }
    labels = {name: ("variant", [row[name] for row in rows]) for name in rows[0]}
    return xr.Dataset(
        {**cells, "last_step": (dims[:2], np.full(last.shape[:2], 900.0))},
        {
            "variant": [f"v{i}" for i in range(len(rows))],
            "seed": range(last.shape[1]),
            "split": list(SPLITS),
            **labels,
            **({"step": [0, 25, 900]} if accuracy else {}),
        },
        attrs={"preset": "templates-copy"},
    )


def made_copy(
    plain: Callable[[int], float], scaled: Callable[[int], float] = lambda width: 8, train: float = 0.0, heads: int = 4
) -> xr.Dataset:
    """Copying is solved at a width from n = plain(width) on, or scaled(width) with identity scaling."""
    rows, errors = [], []
    for model, first in (("plain", plain), ("both", scaled)):
        for width in WIDTHS:
            for n in SIZES:
                rows.append({"model": model, "n": n, "heads": heads, "width": width})
                error = 0.02 if n >= first(width) else 0.8
                errors.append([error, error + 0.03])
    return made_cells(rows, errors, train, accuracy=True)


def made_width(losses: Sequence[float], train: float = 0.001, spread: float = 0.01) -> xr.Dataset:
    rows = [{"model": "plain", "n": 512, "heads": 4, "width": width} for width in WIDTHS[: len(losses)]]
    return made_cells(rows, [[loss - spread, loss + spread] for loss in losses], train, accuracy=False)


def made_directions(
    reach: Callable[[int], float] = lambda width: 64 / (64 + width), scaled: float = 1.0, mismatched: float = 0.0
) -> xr.Dataset:
    """Early updates whose reach to unseen symbols is as given, in two seeds and one layer."""
    widths, dims = np.array(WIDTHS), ("model", "width", "seed", "step", "layer")
    ratio = np.ones((2, len(widths), 2, 3, 1))
    ratio[0] = np.array([reach(width) for width in widths])[:, None, None, None] * np.array([0.99, 1.01])[:, None, None]
    ratio[1] *= scaled
    names = ("seen", "random", "seen_fraction", "head_fraction", "unseen_fraction", "chance_fraction")
    cells: dict[str, Any] = {name: (dims, np.full_like(ratio, 0.1)) for name in names}
    cells |= {
        "unseen": (dims, 0.1 * ratio),
        "ratio": (dims, ratio),
        "mismatched": (dims, np.full_like(ratio, mismatched)),
    }
    predicted = np.broadcast_to(np.stack([64 / (63 + widths), np.ones(5)])[..., None], (2, 5, 2))
    symbols = np.full((2, 5, 2), 64)
    cells |= {"predicted_ratio": (dims[:3], predicted), "n_symbols": (dims[:3], symbols)}
    coordinates = {"model": ["plain", "both"], "width": widths, "seed": [0, 1], "step": [0, 1, 4], "layer": [0]}
    return xr.Dataset(cells, coordinates, attrs={"n": 128})


def judge_as8(dataset: xr.Dataset, directions: xr.Dataset | None = None) -> Finding:
    return judge_copy({"copy": dataset, "copy_directions": made_directions() if directions is None else directions})


def test_the_first_n_that_suffices_is_found_at_each_width() -> None:
    found = find_first_n(made_copy(lambda width: width), "plain")
    assert [(first.width, first.n) for first in found] == [(width, float(width)) for width in WIDTHS]
    assert found[1].below == 32
    assert found[1].by_seed == (64.0, 64.0)
    assert [str(first) for first in find_first_n(made_copy(lambda width: 8), "plain")] == ["8 or fewer"] * 5
    beyond = find_first_n(made_copy(lambda width: 10_000), "plain")[0]
    assert not beyond.reached
    assert str(beyond) == "more than 512"
    assert beyond.at_least == 512


def test_a_run_is_looked_at_when_validation_symbols_are_copied_best() -> None:
    dataset = made_copy(lambda width: width).isel(variant=[0, 6])
    assert split_error(dataset) == pytest.approx(np.array([[0.8, 0.83], [0.02, 0.05]]))
    last_error = 1 - dataset.last_accuracy.sel(split="test").transpose("variant", "seed").values
    assert last_error[1] == pytest.approx([0.51, 0.525])
    later = dataset.split_accuracy.copy()
    later.loc[{"split": "validation", "step": 900}] = 1
    assert split_error(dataset.assign(split_accuracy=later)) == pytest.approx(last_error)


def test_runs_that_are_missing_do_not_count() -> None:
    dataset = made_copy(lambda width: width)
    gone = (dataset.width == 64) & (dataset.n == 64) & (dataset.model == "plain")
    dataset["split_accuracy"] = dataset.split_accuracy.where(~gone)
    assert find_first_n(dataset, "plain")[1].n == 128


def test_a_first_n_beyond_what_was_trained_bounds_a_ratio_from_one_side() -> None:
    known, beyond = FirstN(32, 16, 8, (16,), 64), FirstN(512, np.inf, 256, (np.inf,), 256)
    lowest = FirstN(32, 8, 0, (8,), 64)
    assert ratio_bounds(known, known) == (1, 1)
    assert ratio_bounds(known, beyond) == (16, np.inf)
    assert ratio_bounds(beyond, known) == (0, 16 / 256)
    assert ratio_bounds(lowest, known) == (2, np.inf)
    assert ratio_bounds(lowest, lowest) == (0, np.inf)


def test_rank_correlation_is_that_of_the_ranks() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=20), rng.normal(size=20)
    distances = first.argsort().argsort() - second.argsort().argsort()
    assert rank_correlation(first.tolist(), second.tolist()) == pytest.approx(1 - 6 * (distances**2).sum() / (20 * 399))
    assert rank_correlation([1, 2, 3], [5, 5, np.inf]) == pytest.approx(np.sqrt(3) / 2)
    assert rank_correlation([1, 2, 3], [5, 5, 5]) == 0


def test_variants_with_other_heads_are_not_mixed_in() -> None:
    small, paper = made_copy(lambda width: width), made_copy(lambda width: 8, heads=16)
    few = paper.isel(variant=paper.width.values == 64).assign_coords(
        variant=lambda part: "p" + part.variant.astype(object)
    )
    mixed = xr.concat([small, few], "variant")
    assert set(choose_heads(mixed).heads.values) == {4}
    assert [first.n for first in find_first_n(mixed, "plain")] == list(map(float, WIDTHS))


def test_inverse_scaling_that_identity_scaling_removes_replicates() -> None:
    finding = judge_as8(made_copy(lambda width: width))
    assert finding.verdict == "replicates"
    assert finding.quantities[9].value == 8
    assert finding.quantities[10].value == pytest.approx(64 / 96)
    assert len(finding.quantities) == 16


@pytest.mark.parametrize(
    ("dataset", "word"),
    [
        (made_copy(lambda width: 64), "no growth"),
        (made_copy(lambda width: {32: 16, 64: 512, 128: 256, 256: 64, 512: 32}[width]), "does not follow width"),
        (made_copy(lambda width: width, lambda width: 64), "still needs 64"),
        (made_copy(lambda width: width, lambda width: width // 16), "grows too"),
        (made_copy(lambda width: width, train=0.3), "training itself fails"),
    ],
)
def test_copying_differs_where_a_condition_fails(dataset: xr.Dataset, word: str) -> None:
    finding = judge_as8(dataset)
    assert finding.verdict == "differs"
    assert word in finding.reason


@pytest.mark.parametrize(
    ("directions", "word"),
    [
        (made_directions(lambda width: 0.5), "no loss of reach"),
        (made_directions(scaled=0.3), "as little as 0.30"),
        (made_directions(mismatched=0.05), "nother symbol's answer is raised too"),
    ],
)
def test_copying_differs_where_early_updates_do(directions: xr.Dataset, word: str) -> None:
    finding = judge_as8(made_copy(lambda width: width), directions)
    assert finding.verdict == "differs"
    assert word in finding.reason


def test_a_widest_model_that_no_n_suffices_counts_as_needing_more() -> None:
    finding = judge_as8(made_copy(lambda width: 10_000 if width == 512 else width))
    assert finding.verdict == "replicates"
    assert "more than 512" in finding.reason


def test_copying_is_not_testable_where_bounds_leave_growth_open() -> None:
    all_beyond = judge_as8(made_copy(lambda width: 10_000))
    assert all_beyond.verdict == "not testable"
    assert "train n above 512" in all_beyond.reason
    all_at_once = judge_as8(made_copy(lambda width: 8))
    assert all_at_once.verdict == "not testable"
    assert "smaller n" in all_at_once.reason
    two = made_copy(lambda width: width)
    assert "3 or more" in judge_as8(two.isel(variant=two.width.values < 100)).reason


def test_loss_that_grows_with_width_replicates() -> None:
    finding = judge_width({"width": made_width([0.1, 0.2, 0.3, 0.5, 0.75])})
    assert finding.verdict == "replicates"
    assert "0.10 at width 32 to 0.75" in finding.reason


@pytest.mark.parametrize(
    ("dataset", "word"),
    [
        (made_width([0.5, 0.55, 0.6, 0.65, 0.7]), "less than 2 times"),
        (made_width([0.3, 0.2, 0.1, 0.05, 0.7]), "does not follow width"),
        (made_width([0.3, 0.4, 0.5, 0.6, 0.7], spread=0.25), "overlap"),
        (made_width([0.1, 0.2, 0.3, 0.5, 0.75], train=0.2), "training itself fails"),
    ],
)
def test_width_differs_where_a_condition_fails(dataset: xr.Dataset, word: str) -> None:
    finding = judge_width({"width": dataset})
    assert finding.verdict == "differs"
    assert word in finding.reason


def test_width_is_not_testable_where_nothing_is_learned_or_little_was_trained() -> None:
    assert judge_width({"width": made_width([0.95, 1.0, 1.1, 1.2, 1.9])}).verdict == "not testable"
    assert "3 or more" in judge_width({"width": made_width([0.1, 0.7])}).reason


def made_shape() -> xr.Dataset:
    rows = [
        {"model": model, "n": n, "heads": 4, "setting": setting, "value": value}
        for model, n in (("plain", 512), ("both", 64))
        for setting, values in (("depth", (1.0, 2.0)), ("heads", (1.0, 4.0)), ("rate", (1e-4, 1e-3)), ("batch", (16.0, 64.0)))
        for value in values
    ]  # fmt: skip
    return made_cells(rows, [[0.1 * index, np.nan] for index in range(len(rows))], 0.0, accuracy=False)


def test_what_was_found_is_told_in_numbers() -> None:
    copying = conclude_copy(made_copy(lambda width: width))
    assert "is 32 at width 32, 64 at width 64" in copying
    assert "8 or fewer at width 512" in copying
    assert "0.75 (0.74–0.76) at width 512" in conclude_width(made_width([0.1, 0.2, 0.3, 0.5, 0.75]))
    told = conclude_shape(made_shape())
    assert "With it, n = 64, by learning rate: 0.0001: 1.20, 0.001: 1.30." in told


def test_every_figure_is_drawn(tmp_path: Path) -> None:
    copying, width = made_copy(lambda width: 10_000 if width == 512 else width), made_width([0.1, 0.2, 0.3, 0.5, 0.75])
    early = made_directions()
    drawn = {
        "copy": (draw_copy(copying), 2),
        "width": (draw_width(width), 1),
        "shape": (draw_shape(made_shape()), 4),
        "directions": (draw_directions(early), 3),
        "AS8": (AS8.draw({"copy": copying, "copy_directions": early}), 3),
        "AS9": (AS9.draw({"width": width}), 1),
    }
    assert {name: len(figure.axes) for name, (figure, _) in drawn.items()} == {
        name: n for name, (_, n) in drawn.items()
    }
    assert save_figure(drawn["AS8"][0], tmp_path / "AS8.svg").stat().st_size > 5000
    (line,) = [line for line in drawn["width"][0].axes[0].lines if line.get_label() == "ours, n = 512"]
    assert line.get_ydata() == pytest.approx([0.1, 0.2, 0.3, 0.5, 0.75])


def test_the_experiments_name_these_conclusions_and_figures() -> None:
    copying = made_copy(lambda width: width)
    assert find_experiment("copy").conclude(copying) == conclude_copy(copying)
    assert find_experiment("shape").conclude(made_shape()) == conclude_shape(made_shape())
