"""The parts of models of modular addition by the names of their study, which counts layers from 1.

>>> [part.name for part in sum_parts(config, find_sums(config))][:3]
['nothing', 'everything', 'embeddings']
"""

from __future__ import annotations

from bindscope.interventions.components import (
    EVERYTHING,
    NOTHING,
    Look,
    Part,
    Region,
    mlp_regions,
    ov_regions,
    qk_regions,
)
from bindscope.model.config import ModelConfig
from bindscope.tasks.assign_add import SequenceFormat
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_POSITIONS, N_PREFIX

N_OTHER_TOKENS = 3  # the operator, the equals sign and the PAD
UNEMBEDDING = (Region("unembed.weight"),)


def find_sums(config: ModelConfig) -> SequenceFormat | None:
    """The sums that a model of this shape adds; None where it has another task."""
    n_variables = config.d_vocab - config.outputs - N_OTHER_TOKENS
    if config.n_positions != N_POSITIONS or not 1 <= n_variables <= 26 or config.tied:
        return None
    return SequenceFormat(config.outputs, n_variables)


def sum_parts(config: ModelConfig, sums: SequenceFormat) -> list[Part]:
    """All parts in the order of the forward pass."""
    return [
        Part(NOTHING, "nothing: the receiver as it is"),
        Part(EVERYTHING, "all weights: the donor", (Region("*"),)),
        *_embedding_parts(config, sums),
        *_layer_parts(config),
        *_two_halves(config),
        *_pattern_parts(config),
    ]


def _embedding_parts(config: ModelConfig, sums: SequenceFormat) -> list[Part]:
    def rows(first: int, n: int = 1) -> tuple[Region, ...]:
        return (Region("embed.weight", first, first + n),)

    first = sums.first_variable_token
    parts = [
        Part("embeddings", "the embeddings of all tokens, without positions", (Region("embed.weight"),)),
        Part("numbers", "the embeddings of the numbers", rows(0, sums.modulus)),
        Part("variables", "the embeddings of all variables", rows(first, sums.n_variables)),
        *(
            Part(f"variable {name}", f"the embedding of {name} alone", rows(first + index))
            for index, name in enumerate(sums.variables)
        ),
        Part("operator", "the embedding of the operator", rows(sums.operator_token)),
        Part("equals", "the embedding of =", rows(sums.equals_token)),
        Part("pad", "the embedding of PAD", rows(sums.pad_token)),
    ]
    if config.positions != "learned":
        return parts
    positions = [(index, Region("pos_embed", index, index + 1)) for index in range(N_POSITIONS)]
    return [
        *parts,
        Part("positions", "the embeddings of all positions", (Region("pos_embed"),)),
        *(
            Part(f"position {position}", f"the embedding of position {position} alone", (row,))
            for position, row in positions
        ),
    ]


def _layer_parts(config: ModelConfig) -> list[Part]:
    qk = [qk_regions(config, layer) for layer in range(config.n_layers)]
    ov = [ov_regions(config, layer) for layer in range(config.n_layers)]
    parts = []
    for layer in range(config.n_layers):
        parts += [
            Part(f"QK{layer + 1}", f"W_Q and W_K of layer {layer + 1}: its scores, given what it reads", qk[layer]),
            Part(
                f"OV{layer + 1}", f"W_V and W_O of layer {layer + 1}: what it moves, given where it attends", ov[layer]
            ),
        ]
    if config.n_layers > 1:
        meaning = "W_Q and W_K of layer 2 and W_V and W_O of layer 1: how layer 2 compares what layer 1 has moved"
        parts.append(Part("QK2·OV1", meaning, qk[1] + ov[0]))
    mlps = tuple(region for layer in config.layers_with_mlp for region in mlp_regions(config, layer))
    if mlps:
        parts.append(Part("MLP", "both matrices of the MLP", mlps))
    parts.append(Part("unembedding", "the map from the last stream to the answers", UNEMBEDDING))
    return parts


def _two_halves(config: ModelConfig) -> list[Part]:
    """All weights in two: those that decide where the last layer attends, and those that work on what it then reads."""
    last = config.n_layers - 1
    positions = (Region("pos_embed"),) if config.positions == "learned" else ()
    early = [layer for layer in range(config.n_layers) if layer < last]
    early_mlps = [region for layer in early for region in mlp_regions(config, layer)]
    attention = [region for layer in early for region in (*qk_regions(config, layer), *ov_regions(config, layer))]
    last_mlp = mlp_regions(config, last)
    routing = (Region("embed.weight"), *positions, *attention, *early_mlps, *qk_regions(config, last))
    names = ["embeddings", *["positions"] * bool(positions), *(f"QK{layer + 1}, OV{layer + 1}" for layer in early)]
    names += ["earlier MLPs"] * bool(early_mlps)
    meaning = f"all that decides where the last layer attends: {', '.join(names)} and QK{last + 1}"
    rest = f"the rest: OV{last + 1}, {'MLP' if last_mlp else 'no MLP'} and unembedding"
    return [
        Part("routing", meaning, routing),
        Part("computing", rest, (*ov_regions(config, last), *last_mlp, *UNEMBEDDING)),
    ]


def _pattern_parts(config: ModelConfig) -> list[Part]:
    parts = []
    for layer in range(config.n_layers):
        name = f"pattern {layer + 1}"
        parts.append(Part(name, f"where every position attends in layer {layer + 1}", looks=(Look(layer),)))
        for of, positions in {"=": (ANSWER_POSITION,), "the assignments": tuple(range(N_PREFIX))}.items():
            if of == "=" or layer < config.n_layers - 1:
                meaning = f"where {of} attend{'s' if of == '=' else ''} in layer {layer + 1}"
                parts.append(Part(f"{name} of {of}", meaning, looks=(Look(layer, positions),)))
    return parts
