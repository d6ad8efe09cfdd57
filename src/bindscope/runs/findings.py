"""Something found on a run, in one file: numbers as safetensors, everything else as JSON in its header.

    {"schema": 1, "kind": "circuit", "run": "binding-plain", "step": 3000, "sha256": …, "command": …, "shape": {…},
     "content": {…}, "effect": {…}}

Nothing in such a file is ever executed: reading it gives tensors and plain values, which are checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure, read_bytes, write_atomically
from bindscope.schema import from_mapping

if TYPE_CHECKING:
    from torch import Tensor

    from bindscope.model.config import ModelConfig
    from bindscope.runs.directory import Run

SCHEMA = 1
HEADER = "bindscope"  # the entry of the safetensors metadata that holds the JSON
WHAT = "a finding that --save wrote"
Kind = Literal["subspace", "circuit", "patch"]


@dataclass(frozen=True)
class Shape:
    """What a model must have for the finding to mean something in it."""

    n_layers: int
    n_heads: int
    d_model: int
    outputs: int

    @classmethod
    def of(cls, config: ModelConfig) -> Shape:
        return cls(config.n_layers, config.n_heads, config.d_model, config.outputs)


@dataclass(frozen=True)
class Finding:
    """What was found, where, and what it did there."""

    kind: Kind
    run: str
    step: int
    sha256: str  # of the weights it was found in
    command: str
    shape: Shape
    content: Any  # plain values that the kind understands
    effect: Any  # name → number, on the run and step it comes from
    dtype: str = "float32"
    schema: int = SCHEMA

    @classmethod
    def on(cls, run: Run, step: int, kind: Kind, command: str, content: Any, effect: Any) -> Finding:
        """One on a checkpoint of a run."""
        sha256, shape = run.manifest.checkpoints[step].sha256, Shape.of(run.config.model)
        return cls(kind, run.name, step, sha256, command, shape, content, effect, run.placement.dtype)

    def check_fits(self, config: ModelConfig, name: str, path: Path) -> None:
        """Refuse a model of another shape."""
        own = asdict(Shape.of(config))
        for part, value in asdict(self.shape).items():
            if own[part] != value:
                raise BindscopeError(
                    f"{path}: was found in a model with {part} = {value}, and that of {name} has {own[part]}; apply it "
                    "to a run of the same shape."
                )


def write_finding(path: Path, finding: Finding, tensors: Mapping[str, Tensor]) -> Path:
    """Write a finding whole or not at all; equal findings make equal files."""
    from bindscope.runs.weights import pack_tensors

    try:
        header = json.dumps(asdict(finding), sort_keys=True, allow_nan=False)
    except ValueError:
        raise BindscopeError(f"{path}: not written, as its effect is no finite number; draw more pairs.") from None
    content = pack_tensors(tensors, {HEADER: header})
    with explain_failure(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
    return path


def read_finding(path: Path) -> tuple[Finding, dict[str, Tensor]]:
    """Read one, checked from its first byte to its last."""
    from bindscope.runs.weights import unpack_metadata, unpack_tensors

    content = read_bytes(path, WHAT)
    tensors = unpack_tensors(content, path, WHAT)
    metadata = unpack_metadata(content)
    if HEADER not in metadata:
        raise BindscopeError(f"{path}: is not {WHAT}: it has no '{HEADER}' in its header.")
    try:
        plain = json.loads(metadata[HEADER])
    except (ValueError, RecursionError) as problem:
        raise BindscopeError(f"{path}: its header is not JSON ({problem}).") from None
    if isinstance(plain, dict) and plain.get("schema") != SCHEMA:
        raise BindscopeError(f"{path}: has schema {plain.get('schema')!r}; this Bindscope reads {SCHEMA}.")
    finding = from_mapping(Finding, plain, str(path))
    if not isinstance(finding.content, dict) or not isinstance(finding.effect, dict):
        raise BindscopeError(f"{path}: content and effect must be tables of values; save it again.")
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
            raise BindscopeError(f"{path}: '{name}' holds numbers that are not finite; save it again.")
    return finding, tensors
