"""The paper's own points, read from its figures: what ours are drawn beside.

>>> published("same-different", "both")
{16: 0.6, 32: 0.19, 64: 0.025}
"""

from __future__ import annotations

from collections.abc import Mapping

Points = Mapping[int, float]  # n (training symbols and sequences) → test loss, or error for symbolic labels

SOURCE = "When can transformers reason with abstract symbols? (arXiv 2310.09753)"

# task → model → points. Models: plain, kq, vo, both (identity scaling), and the baselines by their kind.
CURVES: Mapping[str, Mapping[str, Points]] = {
    "same-different": {
        "plain": {128: 0.81, 512: 0.45, 1024: 0.18, 2048: 0.04},
        "both": {16: 0.60, 32: 0.19, 64: 0.025},
        "relation-mlp": {4: 0.14, 2048: 0.03},
    },
    "print-real": {
        "plain": {512: 0.55, 1024: 0.31, 2048: 0.02},
        "kq": {32: 0.38, 64: 0.06},
    },
    "print-symbolic": {
        "plain": {512: 0.50, 32768: 0.50, 131072: 0.30, 262144: 0.14},
        "both": {2048: 0.56, 4096: 0.11, 8192: 0.00},
    },
    "aba-abb": {
        "plain": {512: 0.65},
        "vo": {512: 0.14},
        "kq": {512: 0.002},
        "both": {512: 0.001},
        "rnn": {8192: 0.17},
        "lstm": {8192: 0.29},
        "embedding-mlp": {8192: 1.02},
    },
    "majority-6": {"plain": {8192: 1.02}, "both": {8192: 0.000}},
}
LEARNED_N = 2048  # where the plain transformer has learned same/different
PRINTED_N = 8192  # where the modified transformer prints without error
REPETITION_N, RECURRENT_N = 512, 8192  # of transformers and of other networks, on ABA/ABB
MAJORITY_N = 8192
WIDTH_N = 1024  # of WIDTH_LOSS
PERPLEXITIES = (64.00, 60.46)  # GPT-2 on WikiText-2, without and with identity scaling, from memory: check the paper
MLP_LOSS = 1.0  # of the MLPs on same/different, at every n

# width → the first n whose error is below a tenth, on the copy task
COPY_FIRST_N: Mapping[int, int] = {64: 64, 128: 128, 256: 128, 512: 256, 1024: 1024, 2048: 1024, 4096: 2048}
COPY_FIRST_N_MODIFIED = 16  # or fewer, at every width
WIDTH_LOSS: Mapping[int, float] = {32: 0.10, 128: 0.20, 512: 0.75}  # width → test loss at n = 1,024
GPT2_SCRATCH: Points = {8192: 0.22}
GPT2_PRETRAINED: Points = {32: 0.25, 256: 0.03}

REPORTED: Mapping[str, str] = {  # claim → the paper's figure or number
    "AS8": "first n with error below .1: width 64: 64, 128: 128, 256: 128, 512: 256, 1,024: 1,024; modified: 16 or fewer",
    "AS9": "n = 1,024: test loss .10, .20, .75 at width 32, 128, 512",
    "AS11": "test loss from scratch .22 at n = 8,192; pretrained .25 at n = 32 and .03 at 256",
    "AS12": "GPT-2 from scratch on WikiText-2: perplexity 64.00 → 60.46 (from memory)",
    "AS13": "N nonsingular ⇒ generalises",
}


def published(task: str, model: str) -> Points:
    """The paper's points for a task and a model; none where it has none."""
    return CURVES.get(task, {}).get(model, {})


def list_points(task: str, model: str) -> str:
    """The paper's points in a line."""
    return ", ".join(f"{n:,}: {value:g}" for n, value in published(task, model).items())
