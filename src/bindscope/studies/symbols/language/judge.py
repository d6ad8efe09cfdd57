"""AS12: identity scaling lowers the perplexity of a language model. Reads an experiment on a text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.stats.paired import Paired
from bindscope.studies.framework.claims import Claim, Condition, Finding, Fixed, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import range_of
from bindscope.studies.symbols.language.define import BOTH, FROZEN, NAME, PLAIN
from bindscope.studies.symbols.language.perplexities import compare_with_plain
from bindscope.studies.symbols.published import REPORTED

FEWEST_SEEDS = 3


def judge_language(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS12: lower perplexity with identity scaling, pair by pair, by more than scalars without effect change it."""
    dataset = results[NAME]
    both, frozen = compare_with_plain(dataset, BOTH), compare_with_plain(dataset, FROZEN)
    n_pairs = 0 if both is None else len(both.seeds)
    if both is None or n_pairs < FEWEST_SEEDS:
        return not_testable(
            f"plain and modified model were trained with {n_pairs} seed{'' if n_pairs == 1 else 's'} in common, and "
            f"{FEWEST_SEEDS} are needed, which 'bindscope language PATH --seeds {FEWEST_SEEDS}' trains"
        )
    if frozen is None:
        return not_testable(
            f"the control, '{FROZEN}', was not trained; 'bindscope language PATH --identity {BOTH} --identity {FROZEN}' "
            "does"
        )
    quantities = (
        range_of("plain", dataset.test_perplexity.sel(variant=PLAIN), "1"),
        range_of("identity scaling", dataset.test_perplexity.sel(variant=BOTH), "1"),
        _difference("difference", both),
        Quantity("relative", float(both.changes.mean()), *both.change_interval, n_pairs),
        *(_difference(f"{name.upper()} only", paired) for name, paired in _single(dataset)),
    )
    control, beside = _control(dataset, both, frozen)
    finding = conclude(_criterion(both), control, quantities, beside)
    where = f"{n_pairs} pairs of runs of {dataset.attrs['preset']}, {float(dataset.last_step.max()):,.0f} steps, on "
    return finding.adding(f"{where}{dataset.source.values.item()}.")


def _criterion(both: Paired) -> tuple[Condition, ...]:
    n_lower, n, (low, high) = int((both.differences < 0).sum()), len(both.seeds), both.interval
    interval = f"the mean difference is {both.mean:+.2f} [{low:+.2f} to {high:+.2f}]"
    return (
        Condition(
            n_lower == n,
            f"perplexity is lower with identity scaling in all {n} pairs",
            f"perplexity is lower with identity scaling in {n_lower} of {n} pairs",
        ),
        Condition(high < 0, interval, f"{interval}, which does not exclude 0"),
    )


def _control(dataset: xr.Dataset, both: Paired, frozen: Paired) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """Scalars without effect change little; and the plain model has learned more than how frequent tokens are."""
    noise, least = float(np.abs(frozen.differences).max()), float(np.abs(both.differences).min())
    unigram = float(dataset.unigram_perplexity)
    worst = float(dataset.test_perplexity.sel(variant=PLAIN).max())
    conditions = (
        Condition(
            noise < least,
            f"scalars without effect change it by {noise:.2f} at most, less than the {least:.2f} of any pair",
            f"scalars without effect change it by up to {noise:.2f}, and a pair of the comparison by only {least:.2f}",
        ),
        Condition(
            worst < unigram,
            f"the plain model predicts better than token frequencies do ({unigram:.0f})",
            f"the plain model predicts no better than token frequencies do ({unigram:.0f})",
        ),
    )
    quantities = (
        Quantity("without effect, at most", noise, n=len(frozen.seeds), unit="1"),
        Quantity("token frequencies", unigram, unit="1"),
    )
    return conditions, quantities


def _single(dataset: xr.Dataset) -> list[tuple[str, Paired]]:
    found = ((name, compare_with_plain(dataset, name)) for name in ("kq", "vo"))
    return [(name, paired) for name, paired in found if paired is not None]


def _difference(label: str, paired: Paired) -> Quantity:
    low, high = paired.interval if len(paired.seeds) > 1 else (None, None)
    return Quantity(label, paired.mean, low, high, len(paired.seeds), "1")


AS12 = Claim(
    id="AS12",
    title="Language models gain from it too",
    statement="A language model trained from scratch reaches a lower perplexity with identity scaling than without.",
    paper=REPORTED["AS12"],
    measure=(
        "Perplexity per token of the whole test text, read in windows of one context without overlap, at the end of runs "
        "with and without identity scaling that begin with the same weights and see the same windows, from 'bindscope "
        "experiment language' or 'bindscope language PATH'; the difference seed by seed, with Student's interval of its "
        "mean over seeds."
    ),
    criterion=(
        "Test perplexity with both identity scalings is lower than without in every pair of runs, and the 95 % interval of "
        "the mean paired difference lies below 0."
    ),
    control_description=(
        "The same model whose scalars have gain 0, so that they are computed with and change nothing, differs from the "
        "plain one by less than any pair does; and the plain model predicts better than token frequencies."
    ),
    results=(NAME,),
    judge=judge_language,
    draw=defer(f"{__package__}.draw", "draw_language_claim"),
    fixed=Fixed("2026-11-16", "the paper's numbers, before three pairs of small models were compared"),
)

CLAIMS: tuple[Claim, ...] = (AS12,)
