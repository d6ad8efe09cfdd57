"""Perplexities of language runs as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.cli.table import format_table

if TYPE_CHECKING:
    import xarray as xr


def format_perplexities(dataset: xr.Dataset) -> str:
    """One row for each variant: its perplexity per seed with intervals, per word, and against the plain model."""
    from bindscope.studies.symbols.language.perplexities import compare_with_plain

    rows = []
    for name in map(str, dataset.variant.values):
        known = dataset.sel(variant=name).dropna("seed", subset=["test_perplexity"])
        if not known.sizes["seed"]:
            continue
        paired = compare_with_plain(dataset, name) if name != "plain" else None
        cells = [known.sel(seed=seed) for seed in known.seed.values]
        per_seed = ", ".join(
            f"{float(c.test_perplexity):.2f} [{float(c.test_perplexity_low):.2f}–{float(c.test_perplexity_high):.2f}]"
            for c in cells
        )
        words = f"{float(known.test_word_perplexity.mean()):,.0f}"
        rows.append([name, per_seed, words, "–" if paired is None else paired.describe()])
    headings = ["variant", "test perplexity by seed, 95 % over blocks", "per word", "against plain, 95 % over seeds"]
    return format_table(headings, rows, numbers=[2])
