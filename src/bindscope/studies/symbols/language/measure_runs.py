"""What the records of language runs do not hold: perplexity on the whole of the held-out text, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.perplexity import Perplexity, estimate_perplexity, sum_blocks, text_losses
from bindscope.runs.directory import Run
from bindscope.studies.framework.results import with_progress
from bindscope.tasks.text import Corpus, Split, TextTask

if TYPE_CHECKING:
    from bindscope.studies.framework.experiments import Cell

MOST_BLOCKS = 512  # a long text is cut into fewer, longer blocks
HELD_OUT = ("validation", "test")
OF_TEXT = ["unigram_perplexity", "test_tokens", "test_words", "source", "text_sha256"]  # alike in all


def measure_language(runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None) -> xr.Dataset:
    """Perplexity of each run's last checkpoint, over (variant, seed), for the validation and the test text.

    ``test_perplexity`` (and ``validation_perplexity``) per token with ``_low`` and ``_high``, a 95 % bootstrap over blocks of
    text; ``test_word_perplexity`` per word; ``identity_a`` and ``identity_b`` (variant, seed, layer, head), the trained
    scalars where there are any. ``unigram_perplexity`` is that of predicting each token by its frequency in the training
    text.
    """
    measured: dict[str, list[xr.Dataset]] = {}
    for cell, run in with_progress(list(runs.items()), on_progress):
        measured.setdefault(cell.variant, []).append(_measure_run(run).expand_dims(seed=[cell.seed]))
    cells = [cell for row in measured.values() for cell in row]
    if len({str(cell.text_sha256.values[0]) for cell in cells}) > 1:
        raise BindscopeError("experiment language: its runs were trained on different texts; compare those of one.")
    rows = [
        xr.concat([cell.drop_vars(OF_TEXT) for cell in row], "seed", join="outer", data_vars="all").expand_dims(
            variant=[name]
        )
        for name, row in measured.items()
    ]
    dataset = xr.concat(rows, "variant", join="outer", data_vars="all")
    return dataset.assign({name: cells[0][name].isel(seed=0, drop=True) for name in OF_TEXT})


def _measure_run(run: Run) -> xr.Dataset:
    task = run.config.task
    if not isinstance(task, TextTask):
        raise BindscopeError(f"{run.name}: its task is {task.family}; perplexity is of runs on text.")
    corpus = task.corpus
    if corpus.sha256 != run.manifest.data.get("sha256"):
        raise BindscopeError(
            f"{run.name}: the text or its tokenizer is not what this run was trained on (task.source, task.tokenizer); put "
            "the files back as they were."
        )
    model = run.checkpoint(run.find_step("last"))
    variables: dict[str, Any] = {}
    for name in HELD_OUT:
        split = corpus.splits[name]
        losses = text_losses(model, split.tokens, task.context)
        sums, counts = sum_blocks(losses, task.context * -(-len(losses) // (task.context * MOST_BLOCKS)))
        variables |= _perplexities(name, estimate_perplexity(sums, counts), split)
    for name in ("identity_a", "identity_b"):
        if getattr(model.layers[0].attention, name) is not None:
            scalars = [getattr(layer.attention, name).detach().cpu().numpy() for layer in model.layers]
            variables[name] = (("layer", "head"), np.stack(scalars) * run.config.model.identity_gain)
    variables |= {
        "unigram_perplexity": unigram_perplexity(corpus, task.vocabulary_size),
        "test_tokens": len(corpus.splits["test"].tokens) - 1,
        "test_words": corpus.splits["test"].n_words,
        "source": corpus.description,
        "text_sha256": corpus.sha256,
    }
    return xr.Dataset(variables)


def unigram_perplexity(corpus: Corpus, vocabulary_size: int) -> float:
    """The test text's perplexity by the frequencies of tokens in training, each counted once more than it occurs."""
    counts = np.bincount(corpus.splits["train"].tokens, minlength=vocabulary_size) + 1.0
    losses = -np.log(counts / counts.sum())
    return float(np.exp(losses[corpus.splits["test"].tokens[1:]].mean()))


def _perplexities(name: str, per_token: Perplexity, split: Split) -> dict[str, float]:
    """Per token, and per word: the same loss spread over words instead of tokens."""
    tokens_a_word = per_token.n_tokens / split.n_words
    ends = {"": per_token.value, "_low": per_token.low, "_high": per_token.high}
    return {f"{name}_perplexity{end}": value for end, value in ends.items()} | {
        f"{name}_word_perplexity{end}": value**tokens_a_word for end, value in ends.items()
    }
