"""What the paper reports (arXiv 2505.20896): its own words and numbers, which ours stand beside."""

from __future__ import annotations

from collections.abc import Mapping

SOURCE = "How do transformers learn variable binding in symbolic programs? (arXiv 2505.20896)"

REPORTED: Mapping[str, str] = {  # claim → the paper's figure or number
    "VB1": "≈12 % → ≈56 % → >99.9 %",
    "VB2": "phase 2 answers from line 1/2; 1 hop slower than 2–4",
    "VB3": ">80 % at each rhs, query, colon",
    "VB4": "8 of 96 heads, 2–3 per hop",
    "VB5": "appears with phase 3",
    "VB6": "92.17 % numbers, 87.08 % names",
    "VB7": "line 1 still raised; circuit where it fails",
    "VB8": "6 of 6 seeds",
    "VB9": "works",
    "VB10": "degrades away from 16 lines; line 1 hurts",
    "VB11": "30.87 % of values, 8.90 % of states",
    "VB12": "predicted: no phase 3",
}

SWAP_SUCCESS: Mapping[str, float] = {"values": 0.9217, "names": 0.8708}  # counterfactual answers, subspace swapped
PROBED_VALUES = 0.3087  # accuracy of probes for the value of a variable
