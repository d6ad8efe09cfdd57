"""Where the parts of the queried chain stand in each of many pairs, by name.

The names are those of the constructed circuit: ``lhs k`` and ``rhs k`` are the two sides of the chain's k-th line from
its constant on, then ``query`` and ``colon``. ``distractor`` is the right-hand side of the line nearest after the root
that is not on the chain (or nearest before it, where none follows): a position like the chain's, which the answer does
not depend on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH, QUERY_WIDTH
from bindscope.tasks.binding.rendered import columns_of, programs_of

if TYPE_CHECKING:
    from bindscope.tasks.binding.pairs import CounterfactualPairs

RIGHT, LEFT = LINE_PARTS.index("rhs"), LINE_PARTS.index("lhs")


def named_positions(pairs: CounterfactualPairs) -> dict[str, np.ndarray]:
    """Columns [pair] of every named position, −1 where a pair has none.

    >>> {name: int(column[0]) for name, column in named_positions(pairs).items()}
    {'lhs 1': 0, 'rhs 1': 2, 'lhs 2': 4, 'rhs 2': 6, 'distractor': 10, 'query': 13, 'colon': 14}
    """
    positions: dict[str, np.ndarray] = {}
    for hop, (line, right) in enumerate(zip(_chain_lines(pairs).T, pairs.chain_positions.T), start=1):
        positions[f"lhs {hop}"] = _side_columns(pairs, line, LEFT)
        positions[f"rhs {hop}"] = right
    positions["distractor"] = _nearest_distractors(pairs)
    positions["query"] = np.full(len(pairs), pairs.query_position)
    positions["colon"] = np.full(len(pairs), pairs.colon_position)
    return positions


def distractor_positions(pairs: CounterfactualPairs) -> dict[str, np.ndarray]:
    """Columns [pair] of several right-hand sides off the chain, all after the root, −1 where a pair has none.

    A change at the root reaches only what stands after it, so none of these is beyond its reach: the nearest one, the
    nearest constant, the nearest with the same root (its own value changes with the root's), and the last.
    """
    programs, _ = programs_of(pairs.base)
    lines, chain = np.arange(programs.n_lines), _chain_lines(pairs)
    root = chain[:, :1]
    off_chain = ~(lines[None, :, None] == chain[:, None, :]).any(2) & (lines > root)  # [pair, line]
    kinds = {
        "distractor": off_chain,
        "distractor, constant": off_chain & programs.is_constant,
        "distractor, same root": off_chain & (programs.root == root),
        "distractor, last": off_chain & (lines == np.where(off_chain, lines, -1).max(1)[:, None]),
    }
    return {
        name: _side_columns(pairs, np.where(marked.any(1), marked.argmax(1), -1), RIGHT)
        for name, marked in kinds.items()
    }


def _chain_lines(pairs: CounterfactualPairs) -> np.ndarray:
    """Indices [pair, hop] of the lines on the queried chain, −1 beyond its end."""
    positions = np.searchsorted(columns_of(pairs.base), pairs.chain_positions)
    return np.where(pairs.chain_positions < 0, -1, positions // LINE_WIDTH)


def _side_columns(pairs: CounterfactualPairs, lines: np.ndarray, side: int) -> np.ndarray:
    """The columns of one side of ``lines`` [pair], −1 where there is no line."""
    return np.where(lines < 0, -1, columns_of(pairs.base)[LINE_WIDTH * lines + side])


def _nearest_distractors(pairs: CounterfactualPairs) -> np.ndarray:
    n_lines = (len(columns_of(pairs.base)) - QUERY_WIDTH) // LINE_WIDTH
    lines = np.arange(n_lines)
    chain_lines = _chain_lines(pairs)
    on_chain = (lines[None, :, None] == chain_lines[:, None, :]).any(2)  # [pair, line]
    root = chain_lines[:, :1]
    distance = np.where(lines > root, lines - root, n_lines + root - lines)  # lines after the root come first
    distance = np.where(on_chain, 10 * n_lines, distance)
    nearest = distance.argmin(1)
    return _side_columns(pairs, np.where(on_chain.all(1), -1, nearest), RIGHT)
