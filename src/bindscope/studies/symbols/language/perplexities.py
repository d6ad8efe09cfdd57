"""Perplexities of language runs compared pair by pair: runs of one seed begin alike and see the same text."""

from __future__ import annotations

import xarray as xr

from bindscope.measures.stats.paired import Paired
from bindscope.studies.symbols.language.define import FROZEN, PLAIN


def compare_with_plain(dataset: xr.Dataset, variant: str) -> Paired | None:
    """A variant against the plain model on the whole test text; None where no seed has both.

    >>> compare_with_plain(dataset, "both").interval
    (-1.9, -0.7)
    """
    if not {PLAIN, variant} <= set(map(str, dataset.variant.values)):
        return None
    pairs = dataset.test_perplexity.sel(variant=[PLAIN, variant]).dropna("seed")
    if not pairs.sizes["seed"]:
        return None
    plain, other = pairs.sel(variant=PLAIN).values, pairs.sel(variant=variant).values
    seeds = tuple(int(seed) for seed in pairs.seed.values)
    return Paired(variant, seeds, other - plain, other / plain - 1)


def conclude_language(dataset: xr.Dataset) -> str:
    """The text, each variant's perplexity, and how it differs from the plain model's."""
    n_tokens, n_words = int(dataset.test_tokens), int(dataset.test_words)
    parts = [
        f"Test text: {n_tokens:,} tokens, {n_words:,} words, of {dataset.source.values.item()}.",
        f"By token frequencies alone its perplexity is {float(dataset.unigram_perplexity):.1f}.",
    ]
    for name in map(str, dataset.variant.values):
        known = dataset.sel(variant=name).dropna("seed", subset=["test_perplexity"])
        if known.sizes["seed"]:
            parts.append(_describe_variant(name, known))
        paired = compare_with_plain(dataset, name) if name != PLAIN else None
        if paired is not None:
            parts.append(_describe_pairs(paired))
    return " ".join(parts)


def _describe_variant(name: str, known: xr.Dataset) -> str:
    values, n = known.test_perplexity.values, known.sizes["seed"]
    spread = f", {values.min():.2f} to {values.max():.2f}" if n > 1 else ""
    words = float(known.test_word_perplexity.mean())
    return f"{name} ({n} seed{'s' if n > 1 else ''}): perplexity {values.mean():.2f}{spread} ({words:,.0f} per word)."


def _describe_pairs(paired: Paired) -> str:
    change = f"{100 * paired.changes.mean():+.1f} %"
    lower = f"; lower in {int((paired.differences < 0).sum())} of {len(paired.seeds)} pairs"
    return (
        f"Against the plain model of the same seed that is {paired.describe()}, {change}"
        f"{'' if paired.variant == FROZEN else lower}."
    )
