"""Identity scaling on programs and sums: intervals of censored times against brute force, and what is told of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from math import comb, inf
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.stats.censored import (
    Waits,
    compare_pairs,
    compare_waits,
    interval_depth,
    median_bounds,
    median_interval,
    rank_test,
)
from bindscope.studies.framework.experiments import save_experiment_dataset
from bindscope.studies.symbols.across.draw import draw_across
from bindscope.studies.symbols.across.measure import (
    PATHS,
    across_dataset,
    conclude_across,
    examples_until_learned,
    format_between,
    load_across,
)
from bindscope.tasks.assign_add import SPLIT_NAMES
from cli.answers import answer, refusal

NEVER = np.nan
PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"
STARTS = ("no-mimetic", "neutral")
SLOW, FAST = (500, 550, 600, 650), (250, 300, 350, 400)


def waits(*times: float, end: float = 100.0) -> Waits:
    return Waits(times, (end,) * len(times))


def made_programs(off: tuple[float, ...], both: tuple[float, ...]) -> xr.Dataset:
    """The experiment on programs with these steps until learned."""
    return made_steps({"off": off, "both": both})


def made_starts() -> xr.Dataset:
    """The experiment on other starts of programs: from none of them is the task learned."""
    return made_steps({name: (NEVER,) * 2 for start in STARTS for name in (start, f"{start}+identity")})


def made_steps(steps: Mapping[str, tuple[float, ...]]) -> xr.Dataset:
    learned = np.array(list(steps.values()), float)
    return xr.Dataset(
        {"learned": (("variant", "seed"), learned), "last_step": (("variant", "seed"), np.full(learned.shape, 800.0))},
        {"variant": list(steps), "seed": np.arange(learned.shape[1])},
        made_attributes("binding-tiny", steps),
    )


def made_sums(**steps: tuple[float, ...]) -> xr.Dataset:
    """The experiment on sums; all splits are learned at step 100 but one, which takes as long as told."""
    table = np.array([steps[path] for path in PATHS], float)
    learned = np.full((*table.shape, len(SPLIT_NAMES)), 100.0)
    learned[..., -2] = table
    return xr.Dataset(
        {
            "learned": (("variant", "seed", "split"), learned),
            "last_step": (("variant", "seed"), np.full(table.shape, 2_500.0)),
        },
        {"variant": list(PATHS), "seed": np.arange(table.shape[1]), "split": list(SPLIT_NAMES)},
        made_attributes("assign-add-small", PATHS),
    )


def made_attributes(preset: str, variants: Iterable[str]) -> dict[str, str]:
    return {"preset": preset, "common_changes": "{}", "changes": json.dumps({name: {} for name in variants})}


def made(off: tuple[float, ...], both: tuple[float, ...]) -> xr.Dataset:
    return gathered(made_programs(off, both), made_sums(off=off, qk=both, vo=off, both=both))


def gathered(programs: xr.Dataset, sums: xr.Dataset) -> xr.Dataset:
    return across_dataset({"identity": made_starts(), "identity-programs": programs, "identity-sums": sums})


@pytest.mark.parametrize(("n_first", "n_second"), [(4, 4), (3, 3), (2, 5), (6, 6), (4, 6)])
def test_the_depth_of_the_interval_is_that_of_all_orders_counted_one_by_one(n_first, n_second):
    total = range(n_first + n_second)
    statistics = [
        sum(position > other for position in chosen for other in set(total) - set(chosen))
        for chosen in combinations(total, n_first)
    ]
    assert len(statistics) == comb(n_first + n_second, n_first)
    depths = [d for d in range(n_first * n_second // 2 + 2) if np.mean([u < d for u in statistics]) <= 0.025]
    assert interval_depth(n_first, n_second) == max(depths)


def test_the_interval_holds_the_factors_that_the_rank_test_does_not_reject():
    rng = np.random.default_rng(0)
    first, second = rng.lognormal(0.5, 0.4, 6), rng.lognormal(0, 0.4, 5)
    ratio = compare_waits(waits(*first), waits(*second))
    factors = np.linspace(0.5, 4, 701)
    kept = [factor for factor in factors if rank_test(waits(*first), waits(*factor * second, end=1e3)) > 0.05]
    assert ratio.low == pytest.approx(min(kept), abs=0.01)
    assert ratio.high == pytest.approx(max(kept), abs=0.01)
    assert ratio.lowest == ratio.highest == pytest.approx(np.exp(np.median(np.log(np.divide.outer(first, second)))))


def test_the_interval_holds_the_true_factor_as_often_as_it_says_also_with_censored_runs():
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):
        first, second = 2 * rng.lognormal(0, 0.5, 5), rng.lognormal(0, 0.5, 5)
        ratio = compare_waits(*(waits(*np.where(each > 1.8, inf, each), end=1.8) for each in (first, second)))
        held.append(ratio.low <= 2 <= ratio.high)
    assert np.mean(held) > 0.95 - 2 * np.sqrt(0.05 * 0.95 / 400)


def test_censored_times_leave_the_interval_open_as_wide_as_all_that_they_could_be():
    first, second = waits(40, 60, inf, inf), waits(10, 20, 30, inf)
    ratio = compare_waits(first, second)
    exact = [
        compare_waits(waits(40, 60, *late), waits(10, 20, 30, last))
        for late in product((100.0, 1e3, 1e9), repeat=2)
        for last in (100.0, 1e3, 1e9)
    ]
    assert ratio.low <= min(each.low for each in exact)
    assert ratio.high == inf
    assert all(ratio.lowest <= each.lowest <= ratio.highest for each in exact)


def test_two_groups_alike_turned_round_have_the_ratio_upside_down():
    first, second = waits(40, 60, 70, inf), waits(10, 20, 30, 35)
    there, back = compare_waits(first, second), compare_waits(second, first)
    assert (back.low, back.high) == pytest.approx((0, 1 / there.low))
    assert back.highest == pytest.approx(1 / there.lowest)
    assert there.p == back.p


def test_the_rank_test_knows_which_of_two_runs_took_longer_only_where_that_is_certain():
    assert rank_test(waits(1, 2, 3, 4), waits(5, 6, 7, 8)) == pytest.approx(2 / 70)
    assert rank_test(waits(1, 2, 3, 4), waits(inf, inf, inf, inf)) == pytest.approx(2 / 70)
    assert rank_test(waits(inf, inf), waits(inf, inf)) == 1
    early = Waits((inf,) * 4, (0.5,) * 4)  # ended before any of the others arrived: nothing is known
    assert rank_test(waits(1, 2, 3, 4), early) == 1
    at_the_end = waits(100, 100, 100, 100)
    assert rank_test(at_the_end, waits(inf, inf, inf, inf)) == pytest.approx(2 / 70)


@pytest.mark.parametrize("n", [4, 5, 6, 9, 12])
def test_the_interval_of_the_median_covers_it_as_coins_say(n):
    times = tuple(float(each) for each in range(1, n + 1))
    low, high = median_interval(waits(*times))
    sides = np.array([sum(coins) for coins in product((0, 1), repeat=n)])  # how many of n fall below the median
    depths = [d for d in range(1, n // 2 + 1) if np.mean((sides < d) | (sides > n - d)) <= 0.05]
    expected = (times[max(depths) - 1], times[-max(depths)]) if depths else (0.0, inf)
    assert (low, high) == expected


def test_the_median_is_known_as_far_as_the_runs_tell():
    assert median_bounds(waits(10, 20, 30, inf)) == (25, 25)
    assert median_bounds(waits(10, 20, inf, inf)) == (60, inf)
    assert median_bounds(waits(inf, inf, inf)) == (100, inf)


def test_pairs_are_compared_by_their_own_ratios_and_signs():
    first, second = waits(20, 40, 90, 30, inf, 64), waits(10, 10, 30, 10, 50, 32)
    ratio = compare_pairs(first, second)
    assert (ratio.low, ratio.high, ratio.p) == (2, inf, 2 / 64)  # 2, 4, 3, 3, at least 2, 2
    assert ratio.lowest == pytest.approx(np.sqrt(2 * 3))
    assert ratio.highest == 3
    undecided = compare_pairs(waits(10, inf, 30), waits(10, inf, 20))  # alike, unknown, longer
    assert (undecided.low, undecided.high, undecided.p) == (0, inf, 1)


def test_pairs_find_a_factor_that_the_differences_between_seeds_hide():
    seeds = np.array([1.0, 3, 9, 27, 81, 243])
    slow, fast = waits(*1.5 * seeds, end=1e3), waits(*seeds, end=1e3)
    assert rank_test(slow, fast) > 0.5
    paired = compare_pairs(slow, fast)
    assert (paired.low, paired.lowest, paired.highest, paired.high) == (1.5,) * 4
    assert paired.p == 2 / 64


def test_waits_that_make_no_sense_are_refused():
    with pytest.raises(BindscopeError, match="2 times but 1 ends"):
        Waits((1.0, 2.0), (3.0,))
    with pytest.raises(BindscopeError, match="positive"):
        Waits((1.0,), (inf,))
    with pytest.raises(BindscopeError, match="at least one run"):
        compare_waits(waits(), waits(1))
    with pytest.raises(BindscopeError, match="same number"):
        compare_pairs(waits(1, 2), waits(1))


def test_examples_are_steps_times_batch_size_until_the_last_split_is_learned():
    sums = made_sums(off=(1_900, NEVER), qk=(1, 1), vo=(1, 1), both=(1, 1))
    sums.last_step[0, 1] = 2_000
    examples, seen = examples_until_learned(sums, "off")
    np.testing.assert_array_equal(examples, [1_900 * 256, inf])
    np.testing.assert_array_equal(seen, [2_500 * 256, 2_000 * 256])
    sums.attrs["common_changes"] = '{"training.batch_size": 10}'
    assert examples_until_learned(sums, "off")[0][0] == 19_000


def test_where_all_learn_the_ratio_and_its_interval_are_told():
    dataset = made(SLOW, FAST)
    both = dataset.sel(comparison="sums", path="both")
    assert float(both.ratio_low) == 500 / 400
    assert float(both.ratio_high) == 650 / 250
    assert float(both.ratio_p) == pytest.approx(2 / 70)
    assert float(dataset.ratio_lowest.sel(comparison="sums", path="vo")) == 1
    text = conclude_across(dataset)
    assert "without takes 1.77 times as many, 95 % interval 1.25–2.60, p = 0.029; seed by seed 1.77 times, open" in text
    assert text.endswith("With both identity-scaling terms: binding, recipe, fewer examples; sums, fewer examples.")


def test_where_some_end_before_the_interval_stays_open_above():
    dataset = made((600, NEVER, NEVER, NEVER), FAST)
    both = dataset.sel(comparison="binding, recipe", path="both")
    assert (float(both.ratio_low), float(both.ratio_high)) == (600 / 400, inf)
    text = conclude_across(dataset)
    assert "learned by 1 of 4 runs without identity-scaling terms (median > 51,200 examples), 4 of 4 with both" in text
    assert "95 % interval > 1.50, p = 0.029" in text
    assert "recipe, fewer examples" in text


def test_where_identity_scaling_delays_learning_that_is_told():
    assert conclude_across(made(FAST, SLOW)).endswith("recipe, more examples; sums, more examples.")


def test_where_none_learns_nothing_is_claimed():
    nothing = (NEVER,) * 4
    dataset = made(nothing, nothing)
    both = dataset.sel(path="both")
    assert (both.ratio_low == 0).all()
    assert np.isinf(both.ratio_high).all()
    text = conclude_across(dataset)
    assert "binding, recipe: learned by 0 of 4 runs without identity-scaling terms, 0 of 4 with both." in text
    assert "binding, neutral: learned by 0 of 2 runs without identity-scaling terms, 0 of 2 with both." in text
    assert text.endswith("recipe, no difference shown; sums, no difference shown.")


def test_two_seeds_are_too_few_for_an_interval_however_they_fall():
    text = conclude_across(made((600, 700), (10, 20)))
    assert "95 % interval open, p = 0.33" in text
    assert text.endswith("no difference shown; sums, no difference shown.")


def test_what_was_not_trained_is_left_out():
    programs = made_programs(SLOW, FAST).drop_sel(variant=["off"])
    programs.last_step[0, 2:] = np.nan
    sums = made_sums(off=SLOW, qk=FAST, vo=SLOW, both=FAST).drop_sel(variant=["qk", "vo"])
    dataset = gathered(programs, sums)
    assert int(dataset.examples.sel(comparison="binding, recipe", path="both").notnull().sum()) == 2
    text = conclude_across(dataset)
    assert "binding, recipe: no run without identity-scaling terms to compare with." in text
    assert "with one in the scores" not in text
    assert len(draw_across(dataset).axes) == 2


@pytest.mark.parametrize(
    ("between", "text"),
    [((2, 2), "2"), ((0, inf), "?"), ((1_500, inf), "> 1,500"), ((0, 3), "< 3"), ((1, 3), "1–3")],
)
def test_what_is_known_of_a_number_is_written_shortly(between, text):
    assert format_between(*between) == text


@pytest.mark.parametrize(("off", "both"), [(SLOW, FAST), ((600, NEVER, NEVER, NEVER), FAST), ((NEVER,) * 4,) * 2])
def test_the_figure_has_a_mark_for_every_run(off, both):
    dataset = made(off, both)
    figure = draw_across(dataset)
    marks = [line for axes in figure.axes for line in axes.lines if line.get_marker() in ("o", ">")]
    assert len(marks) == int(dataset.examples.notnull().sum())
    arrows = [line for line in marks if line.get_marker() == ">"]
    assert len(arrows) == int(np.isinf(dataset.examples).sum())


def test_the_shipped_datasets_answer(capsys, tmp_path):
    dataset = across_dataset(load_across(tmp_path))
    for name in ("binding, recipe", "sums"):
        for path in ("off", "both"):
            assert int(dataset.examples.sel(comparison=name, path=path).notnull().sum()) >= 3
    text = answer(capsys, "across", "--runs", str(tmp_path), "--out", str(tmp_path / "a.svg"))
    assert conclude_across(dataset) in text
    page = PAGE.read_text(encoding="utf-8")
    assert conclude_across(dataset) in page, "paste the conclusion of 'bindscope across'"
    assert "figures/across.svg" in page
    assert (tmp_path / "a.svg").exists()
    told = json.loads(answer(capsys, "across", "--runs", str(tmp_path), "--json", "--out", str(tmp_path / "a.nc")))
    assert told["conclusion"] == conclude_across(dataset)
    assert xr.load_dataset(tmp_path / "a.nc", engine="h5netcdf").equals(dataset)


def test_what_was_trained_here_goes_before_what_is_shipped(capsys, tmp_path):
    sums = made_sums(off=SLOW, qk=FAST, vo=SLOW, both=FAST)
    save_experiment_dataset(sums, tmp_path / "experiment-identity-sums" / "identity-sums.nc")
    assert "95 % interval 1.25–2.60, p = 0.029" in answer(capsys, "across", "--runs", str(tmp_path))
    assert "unknown ending" in refusal(capsys, "across", "--out", "across.txt")
