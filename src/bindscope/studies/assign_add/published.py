"""What the paper reports (arXiv 2605.31497): its own words and numbers, which ours stand beside."""

from __future__ import annotations

from collections.abc import Mapping

SOURCE = "Assign and Add (arXiv 2605.31497)"

REPORTED: Mapping[str, str] = {  # claim → the paper's figure or number
    "AA1": "spikes at steps 5,300–5,400 and 14,500–16,000; all splits ≥ 99 % at 20,000",
    "AA2": "20 runs, fractions from .06 to .99: a threshold",
    "AA3": "20 runs, frequencies from .01 to .99: a threshold",
    "AA4": "attention maps",
    "AA5": "matched near 1, shuffled much lower",
    "AA6": "circuit alone nearly perfect; probes fail before, succeed after",
    "AA7": "Fig. 11: neuron 70, a near-perfect match",
    "AA8": "every position 1–11 prefers the one before it",
    "AA9": "largest on the diagonal for all 12 variables",
    "AA10": "spike 1 at 5,300–5,400, spike 2 at 14,500–16,000 (b as second operand)",
    "AA11": "−∇W ≈ (2αελ/K) Σ Φv(Φv)ᵀ + …, up to ε and 1/p (Theorems 7.1, C.1)",
}
