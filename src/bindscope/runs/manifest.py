"""``manifest.json``: what a run is, with everything needed to make it again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import bindscope
from bindscope.errors import BindscopeError
from bindscope.runs.files import hash_json, read_json
from bindscope.schema import from_mapping, to_mapping

FORMAT = 2
WITHOUT_HASHES = 1  # an earlier format that is read too: neither the manifest nor the evaluations have a hash
HASH = "sha256"  # of everything else in the manifest
IMPORTED, CONSTRUCTED = "imported", "constructed"  # kinds of data of a run that was not trained here
NOTE = "note"  # where a manifest's data holds what a person said of imported checkpoints
Status = Literal["training", "finished", "stopped early"]


@dataclass(frozen=True)
class Original:
    """A checkpoint from elsewhere that was not copied: where it is, and the hashes of the files that are read."""

    path: str  # absolute, of a file or a directory
    files: Mapping[str, str]  # absolute path → SHA-256


@dataclass(frozen=True)
class KeptCheckpoint:
    """One file of weights and what it must contain to be used."""

    file: str
    sha256: str
    n_bytes: int
    dtype: str
    original: Original | None = None  # where the weights are instead, of a linked checkpoint


@dataclass(frozen=True)
class Recorded:
    """The evaluations that are recorded for good: so many lines of ``metrics.jsonl``, with their hash."""

    n_lines: int = 0
    sha256: str = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Manifest:
    """The index card of a run."""

    name: str
    config: Mapping[str, Any]  # the resolved RunConfig
    seeds: Mapping[str, int]
    total_steps: int
    status: Status = "training"
    thinned: bool = False  # a compact copy: some checkpoints, no state to resume from
    created: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None  # of Bindscope's source, when it runs from a checkout
    machine: Mapping[str, Any] = field(default_factory=dict)  # device, threads, processes
    data: Mapping[str, Any] = field(default_factory=dict)  # the hash of what it was trained on
    start: Mapping[str, Any] = field(default_factory=dict)  # the pretrained weights it began with: where, their hash
    stage_starts: tuple[int, ...] = ()  # of staged data: the step at which each stage after the first began
    checkpoints: Mapping[int, KeptCheckpoint] = field(default_factory=dict)
    evaluations: Recorded | None = Recorded()  # None in a run of an earlier format
    family_from: str = ""  # where its task's family was defined, if not in Bindscope: to be read, never to be loaded

    def to_json(self) -> bytes:
        checkpoints = {str(step): _entry(self.checkpoints[step]) for step in sorted(self.checkpoints)}
        content = {"format": FORMAT, **to_mapping(self), "checkpoints": checkpoints}
        if not self.family_from:
            del content["family_from"]
        content[HASH] = hash_json(content)
        return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def read_manifest(path: Path) -> Manifest:
    """The manifest at ``path``, refused with a sentence when it is damaged or of a later Bindscope."""
    content = read_json(path, "the manifest")
    if not isinstance(content, dict) or "format" not in content:
        raise BindscopeError(f"{path}: not the manifest of a run.")
    values = dict(content)
    sha256, hashed = values.pop(HASH, None), hash_json(values)
    written = values.pop("format")
    if written not in (FORMAT, WITHOUT_HASHES):
        raise BindscopeError(f"{path}: written in format {written}, this Bindscope reads {FORMAT}; update it.")
    if sha256 != (hashed if written == FORMAT else None):
        raise BindscopeError(
            f"{path}: the manifest is damaged: its content is not what was recorded when it was written."
        )
    if written == WITHOUT_HASHES:
        values["evaluations"] = None
    entries = values.pop("checkpoints", {})
    if not isinstance(entries, dict) or not all(map(is_step, entries)):
        raise BindscopeError(f"{path}: the manifest is damaged: its 'checkpoints' are not an index by step.")
    checkpoints = {int(step): from_mapping(KeptCheckpoint, entry, f"{path}: {step}") for step, entry in entries.items()}
    for entry in checkpoints.values():
        if Path(entry.file).name != entry.file:
            raise BindscopeError(f"{path}: the manifest is damaged: '{entry.file}' is no name of a checkpoint.")
        if entry.original is not None and not isinstance(entry.original.files, Mapping):
            raise BindscopeError(f"{path}: the manifest is damaged: it names no files of '{entry.original.path}'.")
    return dataclasses.replace(from_mapping(Manifest, values, str(path)), checkpoints=checkpoints)


def _entry(kept: KeptCheckpoint) -> dict[str, Any]:
    return {name: value for name, value in to_mapping(kept).items() if not (name == "original" and value is None)}


def is_step(text: str) -> bool:
    """Whether a key of the index is a step."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def describe_origin(device: str, n_threads: int, n_processes: int, launch: str = "") -> dict[str, Any]:
    """The fields of a manifest that say when, with what and on what kind of machine a run was started."""
    machine = {
        "device": device,
        "threads": n_threads,
        "processes": n_processes,
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
    }
    if launch:
        machine["launch"] = launch  # of torchrun, whose next attempt may go on with the run
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "commit": _source_commit(),
        "machine": machine,
    }


def _versions() -> dict[str, str]:
    versions = {"bindscope": bindscope.__version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "safetensors"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "unknown"
    return versions


def _source_commit() -> str | None:
    """The commit of Bindscope's own source, with ``+changes`` when files differ from it; None when installed."""
    package = Path(bindscope.__file__).parent

    def ask_git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=package, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        ask_git("ls-files", "--error-unmatch", "__init__.py")  # tracked: the checkout is ours, not one around us
        changed = ask_git("status", "--porcelain", "--", ".")
        return ask_git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
