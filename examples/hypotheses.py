"""A hypothesis of one's own about how a model answers programs: whatever is asked, it gives the value of the last line.

    bindscope hypotheses binding-laptop --second examples/hypotheses.py:last_line

It is a causal model: for a depth of the queried chain its variables in order, the answer last, each with the position whose
residual stream should hold it.
"""

from __future__ import annotations

from bindscope.measures.binding.hypotheses.causal import Variable


def last_line(depth: int) -> list[Variable]:
    return [
        Variable("last value", "query", lambda program, lines: program.values[-1]),
        Variable("answer", "colon", lambda program, lines, value: value, parents=("last value",)),
    ]
