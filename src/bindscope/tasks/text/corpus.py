"""A text as tokens, in three splits that share none of it, and what it is recognised by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.text.sources import Source, read_source
from bindscope.tasks.text.tokenizer import TextTokenizer, load_tokenizer, train_tokenizer

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """One part of a text: its tokens, and how many words and bytes they spell."""

    tokens: np.ndarray  # [token] uint16 or uint32; begins with the end-of-text token where the tokenizer has one
    n_words: int  # separated by white space, so the same whatever the tokenizer
    n_bytes: int  # in UTF-8


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text ready to be trained on.

    >>> corpus = load_corpus("python-library", "", 1024, "text", 0.05, 0.05)
    >>> len(corpus.splits["test"].tokens), corpus.description
    """

    splits: Mapping[str, Split]
    tokenizer: TextTokenizer
    description: str  # where the text comes from, in a few words
    sha256: str  # of the token ids of all splits, so of text and tokenizer together


@lru_cache(maxsize=2)
def load_corpus(
    source: str, tokenizer: str, vocabulary_size: int, column: str, validation_share: float, test_share: float
) -> Corpus:
    """Read a source, split it, and turn it into tokens; the same call gives the same tokens on every machine."""
    read = read_source(source, column)
    texts = _split_texts(read, {"test": test_share, "validation": validation_share})
    if tokenizer:
        chosen = load_tokenizer(tokenizer, vocabulary_size)
    else:
        chosen = train_tokenizer(texts["train"], vocabulary_size)
    splits = {name: _encode(texts[name], chosen) for name in SPLITS}
    return Corpus(splits, chosen, read.description, _hash_splits(splits))


def _split_texts(source: Source, fractions: Mapping[str, float]) -> dict[str, list[str]]:
    """The given splits; those that are not given are cut from the end of the training text, at a line's end."""
    texts = {name: list(documents) for name, documents in source.splits.items()}
    n_characters = sum(map(len, texts.get("train", ())))
    if not n_characters:
        raise BindscopeError(f"task.source: '{source.name}' holds no training text.")
    for name, fraction in fractions.items():
        if name not in texts:
            texts["train"], texts[name] = _cut_end(texts["train"], round(fraction * n_characters))
    for name in SPLITS:
        if not any(text.strip() for text in texts[name]):
            raise BindscopeError(f"task.source: the {name} part of '{source.name}' is empty; give a longer text.")
    return texts


def _cut_end(documents: Sequence[str], n_characters: int) -> tuple[list[str], list[str]]:
    """All but about the last ``n_characters``, and those; a document is cut after a line break where it has one."""
    kept, cut = list(documents), list[str]()
    while kept and n_characters >= len(kept[-1]):
        n_characters -= len(kept[-1])
        cut.insert(0, kept.pop())
    if kept and n_characters:
        document = kept.pop()
        start = document.rfind("\n", 0, len(document) - n_characters) + 1 or len(document) - n_characters
        kept.append(document[:start])
        cut.insert(0, document[start:])
    return kept, cut


def _encode(documents: Sequence[str], tokenizer: TextTokenizer) -> Split:
    kind = np.uint16 if tokenizer.size <= 1 << 16 else np.uint32
    parts: list[np.ndarray] = []
    for document in documents:
        if tokenizer.separator is not None:
            parts.append(np.array([tokenizer.separator]))
        parts.append(tokenizer.encode(document))
    tokens = np.concatenate(parts).astype(kind)
    tokens.setflags(write=False)
    n_words = sum(len(document.split()) for document in documents)
    return Split(tokens, n_words, sum(len(document.encode()) for document in documents))


def _hash_splits(splits: Mapping[str, Split]) -> str:
    digest = hashlib.sha256()
    for name, split in splits.items():
        digest.update(f"{name}{len(split.tokens)}".encode())
        digest.update(split.tokens.astype("<u4").tobytes())
    return digest.hexdigest()
