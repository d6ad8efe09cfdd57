"""A vocabulary of single characters as the files of a Hugging Face tokenizer, in which a text is its characters."""

from __future__ import annotations

from typing import Any

from bindscope.tasks.vocabulary import Vocabulary


def why_no_tokenizer(vocabulary: Vocabulary | None) -> str | None:
    """Why there is no character tokenizer for this vocabulary, or None."""
    if vocabulary is None:
        return "no tokenizer was written, because no vocabulary was given; pass token ids."
    longer = [symbol for symbol in vocabulary.symbols if len(symbol) != 1]
    if longer:
        return f"no tokenizer was written, because {longer[0]!r} is not a single character; pass token ids."
    return None


def tokenizer_files(vocabulary: Vocabulary, context: int) -> dict[str, dict[str, Any]]:
    """File names to their JSON: every character is split off and looked up; an unknown one is an error."""
    every_character = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
    return {
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": every_character,
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": vocabulary.ids, "unk_token": "<unknown>"},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": context,
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    }
