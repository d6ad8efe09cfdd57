"""Answers without a circuit, held to a model that gives the value of a random variable of the program.

Chains are drawn so that line 1's digit is held by many variables, above all where it is the answer. Whoever answers with
the value of any variable is then right more often where line 1 is right, and gives line 1's digit often where it is not:
that alone is no trace of a heuristic. So both are compared with what the random variable would do on the same programs,
and programs that line 1 gets right and wrong are *matched*: weighted so that as many of their variables hold its digit.

>>> compare_with_random_variable(answers, batch, rng).comparison.values
array(['surplus', 'surplus, random variable', 'surplus beyond it', …])
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.tasks.binding import programs_of, to_digits
from bindscope.tasks.task import Batch

COMPARISONS = (
    "surplus",  # right answers without the circuit: where line 1 is right, above where it is wrong; matched programs
    "surplus, random variable",  # the same of the random variable
    "surplus beyond it",  # the difference of the two
    "line 1 beyond random variable",  # line 1's digit given without the circuit where it is wrong, above the random variable
    "heuristic serves",  # answers lost without the heuristic: where line 1 is right, above where it is wrong; matched
    "random heads serve",  # the same without as many random heads
)
N_RESAMPLES, TAIL = 1000, 0.025


def compare_with_random_variable(
    answers: Mapping[str, np.ndarray], batch: Batch, rng: np.random.Generator
) -> xr.Dataset:
    """Each of COMPARISONS with its 95 % bootstrap interval over programs: ``difference`` over (comparison,).

    ``answers`` [set, example] are output ids for the conditions intact, circuit ablated, heuristic ablated and random
    ablated; several sets of heads are averaged. ``n_matched`` is how many programs of each group the matching keeps.
    """
    said = {name: to_digits(batch, outputs) for name, outputs in answers.items()}  # [set, example]
    answer, line_1 = to_digits(batch, batch.targets[:, 0]), batch.labels["rule_line_1"][:, 0]
    right = {name: (digits == answer).mean(0) for name, digits in said.items()}  # [example]
    holds_answer, holds_line_1 = count_holders(batch, answer), count_holders(batch, line_1)
    weights, n_matched = match_programs(line_1 == answer, holds_line_1)  # [group, example]
    wrong = (line_1 != answer).astype(float)
    lost = {name: right["intact"] - right[name] for name in right}
    line_1_given = (said["circuit ablated"] == line_1).mean(0)

    def compute(counts: np.ndarray) -> np.ndarray:
        """[resample, comparison] for programs drawn ``counts`` [resample, example] times."""

        def surplus(values: np.ndarray) -> np.ndarray:
            first, second = (_means(values, group * counts) for group in weights)
            return first - second

        without, by_chance = surplus(right["circuit ablated"]), surplus(holds_answer)
        beyond = _means(line_1_given - holds_line_1, wrong * counts)
        serve = [surplus(lost[name]) for name in ("heuristic ablated", "random ablated")]
        return np.stack([without, by_chance, without - by_chance, beyond, *serve], 1)

    n = len(answer)
    resampled = compute(rng.multinomial(n, np.full(n, 1 / n), N_RESAMPLES).astype(float))
    low, high = np.nanquantile(resampled, [TAIL, 1 - TAIL], axis=0)
    values = {"difference": compute(np.ones((1, n)))[0], "difference_low": low, "difference_high": high}
    dataset = xr.Dataset(
        {name: ("comparison", each) for name, each in values.items()}, {"comparison": list(COMPARISONS)}
    )
    return dataset.assign(n_matched=n_matched)


def count_holders(batch: Batch, digits: np.ndarray) -> np.ndarray:
    """The fraction [example] of a program's variables whose final value is its digit in ``digits`` [example]."""
    programs, _ = programs_of(batch)
    held = (programs.value == digits[:, None]) & programs.live
    return held.sum(1) / programs.live.sum(1)


def match_programs(right: np.ndarray, holders: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights [group, example] under which both groups have the same distribution of ``holders``, and how many they keep.

    The first group is ``right``. Programs with a number of holders that only one group has get no weight.
    """
    weights = np.zeros((2, len(right)))
    kept = 0.0
    for holding in np.unique(holders):
        groups = [mask & (holders == holding) for mask in (right, ~right)]
        fewest = min(int(group.sum()) for group in groups)
        kept += fewest
        for row, group in zip(weights, groups):
            row[group] = fewest / max(1, int(group.sum()))
    return weights, kept


def _means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted means [resample] of ``values`` [example] under ``weights`` [resample, example]."""
    total = weights.sum(1)
    return np.divide(weights @ values, total, out=np.full(len(total), np.nan), where=total > 0)
