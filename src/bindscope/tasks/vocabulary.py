"""Token ids and the text they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bindscope.errors import BindscopeError


def show_symbol(symbol: str) -> str:
    """A symbol as it can stand in a line of text: the line break, which an untrained model may well answer, as ``\\n``.

    >>> show_symbol("a")
    'a'
    """
    return symbol.replace("\n", "\\n") or "∅"


@dataclass(frozen=True)
class Vocabulary:
    """An ordered tuple of distinct symbols; a token id is a symbol's index in it."""

    symbols: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.symbols)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.symbols)}

    def encode(self, symbols: Iterable[str]) -> list[int]:
        try:
            return [self.ids[symbol] for symbol in symbols]
        except KeyError as missing:
            raise BindscopeError(f"{missing.args[0]!r} is not a token of this task.") from None

    def shown(self, n_outputs: int | None = None) -> list[str]:
        """What each output of a model stands for, as it can be printed."""
        return [show_symbol(symbol) for symbol in self.symbols[:n_outputs]]

    def decode(self, tokens: Sequence[int]) -> list[str]:
        return [self.symbols[int(token)] for token in tokens]
