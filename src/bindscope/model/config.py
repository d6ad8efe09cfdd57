"""The shape of a transformer, as data. No torch here, so that listing presets stays instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bindscope.errors import BindscopeError

MOST_PARTS, MOST_SIZE = 10_000, 100_000_000  # layers and heads; tokens, positions and widths: none that exists has more
Activation = Literal["gelu", "gelu_tanh", "relu", "silu", "cos"]


@dataclass(frozen=True)
class InitConfig:
    """How weights start.

    ``gpt2``: N(0, std²) everywhere, residual outputs scaled by 1/√(2·n_layers) when ``scale_residual``.
    ``fan_in``: linear weights N(0, gain²/fan_in), embeddings N(0, embedding_std²).
    The other parts are added on top of either, and are off by default; ``initialise`` says what each is for.
    """

    scheme: Literal["gpt2", "fan_in"] = "gpt2"
    std: float = 0.02
    scale_residual: bool = False
    gain: float = 1.0
    embedding_std: float = 1.0
    mimetic_vo: float = 0.0  # W_O = mimetic_vo · W_Vᵀ per head
    mimetic_qk: float = 0.0  # W_Q = W_K, spread mimetic_qk/√d_model, in the layers without offset-biased attention
    orthogonal: bool = False  # the mimetic matrices are orthonormal over all heads instead of Gaussian
    offset_bias: float = 0.0  # c: each head of an offset layer starts by preferring the token some positions back
    offset_layers: int = 1
    offsets: tuple[int, ...] | None = None  # how many positions, head by head; None: head h looks h back
    relay_offset: int | None = None  # the offset head that copies through a rotation which later keys look through
    readout_gain: float = 1.0  # the unembedding starts this many times as large as the scheme says
    qk_bias_std: float = 0.0  # query and key biases start as N(0, qk_bias_std²) instead of zero
    tied_start: float = 0.0  # the unembedding starts as tied_start · embedding/√d_model

    def __post_init__(self) -> None:
        for name in ("std", "gain", "embedding_std", "readout_gain", "offset_layers", "qk_bias_std"):
            if getattr(self, name) < 0:
                raise BindscopeError(f"model.init.{name}: must not be negative, got {getattr(self, name)}.")


@dataclass(frozen=True)
class BaselineConfig:
    """A simpler network in place of the transformer (``model/baselines.py``), which takes its other sizes from it."""

    kind: Literal["one-hot-mlp", "embedding-mlp", "relation-mlp", "rnn", "lstm"] = "embedding-mlp"
    d_hidden: int = 256
    n_layers: int = 2

    def __post_init__(self) -> None:
        for name in ("d_hidden", "n_layers"):
            if getattr(self, name) < 1:
                raise BindscopeError(f"baseline.{name}: must be at least 1, got {getattr(self, name)}.")


@dataclass(frozen=True)
class ModelConfig:
    """One transformer. Defaults describe a small pre-LayerNorm RoPE GPT.

    >>> ModelConfig(d_vocab=40, n_positions=67, n_layers=2).n_parameters
    """

    d_vocab: int
    n_positions: int
    d_out: int | None = None  # None: as many outputs as tokens
    n_layers: int = 4
    n_heads: int = 4
    n_kv_heads: int | None = None  # keys and values, each shared by n_heads/n_kv_heads heads; None: one for each head
    d_model: int = 64
    d_head: int = 16
    d_mlp: int = 256
    causal: bool = True
    positions: Literal["rope", "learned", "normal", "none"] = "rope"  # normal: fixed N(0, 1/d_model), never trained
    rope_base: float = 10000.0
    rope_fraction: float = 1.0  # fraction of each head's dimensions that rotate (GPT-NeoX's rotary_pct)
    norm: Literal["layer", "rms", "none"] = "layer"
    norm_epsilon: float = 1e-5
    parallel: bool = False  # the MLP reads what enters the layer, as attention does (GPT-NeoX)
    bias: bool = True  # biases of the linear maps; LayerNorm always has its own
    activation: Activation = "gelu"
    gated: bool = False  # the activation of one linear map multiplies another (SwiGLU, with silu)
    mlp_layers: tuple[int, ...] | None = None  # the layers that have an MLP; None: all
    dropout: float = 0.0
    tied: bool = False
    identity_qk: bool = False  # attention scores += gain · a_h · x xᵀ/√d_model
    identity_vo: bool = False  # head output += gain · b_h · A_h x
    identity_gain: float = 1.0
    init: InitConfig = field(default_factory=InitConfig)

    def __post_init__(self) -> None:
        sizes = ("d_vocab", "n_positions", "n_layers", "n_heads", "d_model", "d_head", "d_mlp")
        for name in sizes:
            if getattr(self, name) < 1:
                raise BindscopeError(f"model.{name}: must be at least 1, got {getattr(self, name)}.")
            most = MOST_PARTS if name in ("n_layers", "n_heads") else MOST_SIZE
            if getattr(self, name) > most:
                raise BindscopeError(f"model.{name}: must be at most {most:,}, got {getattr(self, name)}.")
        if self.d_out is not None and not 1 <= self.d_out <= MOST_SIZE:
            raise BindscopeError(
                f"model.d_out: must be at least 1 and at most {MOST_SIZE:,}, or none, got {self.d_out}."
            )
        if self.n_kv_heads is not None and (self.n_kv_heads < 1 or self.n_heads % self.n_kv_heads):
            raise BindscopeError(
                f"model.n_kv_heads: must divide the {self.n_heads} heads into equal groups, got {self.n_kv_heads}."
            )
        if self.norm_epsilon <= 0:
            raise BindscopeError(f"model.norm_epsilon: must be above 0, got {self.norm_epsilon}.")
        if self.rope_base <= 0:
            raise BindscopeError(f"model.rope_base: must be above 0, got {self.rope_base}.")
        if not 0 <= self.rope_fraction <= 1:
            raise BindscopeError(f"model.rope_fraction: must lie between 0 and 1, got {self.rope_fraction}.")
        if not 0 <= self.dropout < 1:
            raise BindscopeError(f"model.dropout: must lie in [0, 1), got {self.dropout}.")
        if self.tied and self.outputs != self.d_vocab:
            raise BindscopeError("model.tied: tied embeddings need d_out equal to d_vocab.")
        if self.positions == "rope" and (self.rope_dims < 2 or self.rope_dims % 2):
            raise BindscopeError(
                f"model.rope_fraction: {self.rope_dims} rotating dimensions of {self.d_head}; need an even number ≥ 2."
            )
        if self.mlp_layers is not None and any(not 0 <= layer < self.n_layers for layer in self.mlp_layers):
            raise BindscopeError(f"model.mlp_layers: {self.mlp_layers} names a layer outside 0..{self.n_layers - 1}.")
        if self.init.offsets is not None and len(self.init.offsets) != self.n_heads:
            raise BindscopeError(f"model.init.offsets: name one for each of the {self.n_heads} heads.")
        if self.init.relay_offset is not None and self.init.relay_offset not in self.head_offsets:
            raise BindscopeError(f"model.init.relay_offset: no head looks {self.init.relay_offset} positions back.")
        if self.init.qk_bias_std and not self.bias:
            raise BindscopeError("model.init.qk_bias_std: random query and key biases need bias = true.")
        if self.init.offset_bias and not (self.bias and self.positions == "rope"):
            raise BindscopeError(
                "model.init.offset_bias: offset-biased attention needs bias = true and rope positions."
            )
        for name in ("mimetic_qk", "mimetic_vo", "offset_bias"):
            if getattr(self.init, name) and self.kv_heads != self.n_heads:
                raise BindscopeError(f"model.init.{name}: needs keys and values for each head, without n_kv_heads.")

    @property
    def outputs(self) -> int:
        return self.d_vocab if self.d_out is None else self.d_out

    @property
    def kv_heads(self) -> int:
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def qkv_rows(self) -> tuple[int, int, int]:
        """How many rows of the joint projection are queries, keys and values."""
        return self.n_heads * self.d_head, self.kv_heads * self.d_head, self.kv_heads * self.d_head

    @property
    def rope_dims(self) -> int:
        return int(self.d_head * self.rope_fraction)

    @property
    def head_offsets(self) -> tuple[int, ...]:
        """How many positions back each head of an offset layer attends to the start."""
        return tuple(range(self.n_heads)) if self.init.offsets is None else self.init.offsets

    @property
    def layers_with_mlp(self) -> tuple[int, ...]:
        return tuple(range(self.n_layers)) if self.mlp_layers is None else self.mlp_layers

    @property
    def n_parameters(self) -> int:
        """Trained parameters, counted from the shape alone."""
        d, rows, bias = self.d_model, sum(self.qkv_rows), int(self.bias)
        norm = {"layer": 2 * d, "rms": d, "none": 0}[self.norm]
        attention = d * (rows + self.n_heads * self.d_head) + bias * (rows + d) + norm
        attention += self.n_heads * (int(self.identity_qk) + int(self.identity_vo))
        mlp = (2 + self.gated) * d * self.d_mlp + bias * ((1 + self.gated) * self.d_mlp + d) + norm
        embeddings = self.d_vocab * d + (0 if self.tied else d * self.outputs)
        if self.positions == "learned":
            embeddings += self.n_positions * d
        return self.n_layers * attention + len(self.layers_with_mlp) * mlp + norm + embeddings
