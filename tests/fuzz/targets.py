"""Input that somebody else wrote, and where it enters. Each target takes one case: it succeeds or says one sentence.

A case is drawn by Hypothesis, so that a seed makes the same ones again and a failure is made small.
"""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
import xarray
from hypothesis import strategies as st

from bindscope.model.config import ModelConfig
from bindscope.model.convert.checkpoint import load_checkpoint
from bindscope.model.run import check_site
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.runs.config import list_settings, override
from bindscope.runs.directory import Run
from bindscope.runs.findings import read_finding
from bindscope.runs.results import read_result
from bindscope.runs.weights import pack_weights
from bindscope.studies.framework.documents import read_documents
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.settings_file import preset_to_toml, read_preset
from bindscope.studies.framework.verify import find_claim
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.binding.program import parse_program
from bindscope.tasks.templates.reading import read_labels, read_templates
from bindscope.tasks.templates.template import Template

OLD_RUN = Path(__file__).parents[1] / "runs" / "formats" / "format-1"  # its manifest has no hash: any change is read
EXAMPLE = Path(__file__).parents[2] / "examples"
HUGE = (0, -1, 1, 2**31, 2**63, 2**64, 10**12, 10**30)
ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([*HUGE, 1e308, -0.0, "", "none", "nan", "inf", "1e999", "\x00", "\ud800", "../..", "٣", [], {}, None, True]),
    st.integers(), st.floats(), st.text(max_size=20), st.lists(st.integers(), max_size=3),
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """What is fuzzed: its cases, and what is done with one in a folder of its own."""

    cases: st.SearchStrategy[Any]
    take: Callable[[Any, Path], object]


def near(alphabet: str, examples: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Texts of this alphabet, any texts, and examples with something changed."""
    changed = st.builds(
        lambda text, at, n, put: text[: at % (len(text) + 1)] + put + text[at % (len(text) + 1) + n :],
        st.sampled_from(examples), st.integers(0, 1000), st.integers(0, 3), st.text(max_size=4),
    )  # fmt: skip
    return st.one_of(st.text(alphabet, max_size=60), st.text(max_size=40), changed)


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """A file with some bytes changed, cut off or added."""
    places = st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=8)
    early = st.lists(st.tuples(st.integers(0, min(600, len(content) - 1)), st.integers(0, 255)), min_size=1, max_size=4)

    def change(changes: list[tuple[int, int]], end: int | None, more: bytes) -> bytes:
        changed = bytearray(content)
        for at, byte in changes:
            changed[at] = byte
        return bytes(changed[:end]) + more

    return st.builds(change, places | early, st.none() | st.integers(0, len(content)), st.binary(max_size=20))


def changed_tree(tree: Any) -> st.SearchStrategy[Any]:
    """Nested settings with one to three values replaced by odd ones, or keys by others."""
    paths = list(_paths(tree))

    def change(changes: list[tuple[tuple[Any, ...], Any, str | None]]) -> Any:
        made = json.loads(json.dumps(tree))
        for path, value, name in changes:
            inner = made
            for key in path[:-1]:
                if not isinstance(inner, dict) or key not in inner:  # an earlier change took it away
                    break
                inner = inner[key]
            else:
                if isinstance(inner, dict):
                    inner[path[-1] if name is None else name] = value
        return made

    return st.builds(
        change,
        st.lists(st.tuples(st.sampled_from(paths), ODD, st.none() | st.text(max_size=8)), min_size=1, max_size=3),
    )


def _paths(tree: Any, before: tuple[Any, ...] = ()) -> Any:
    for key, value in tree.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from _paths(value, (*before, key))


def take_program(text: str, folder: Path) -> None:
    for reassignment in (False, True):
        try:
            program = parse_program(text, reassignment)
        except Exception:
            if reassignment:
                raise
        else:
            assert parse_program(program.text, reassignment) == program
    BindingTask().read(text, 64)


def take_site(text: str, folder: Path) -> None:
    site = Site.parse(text)
    assert Site.parse(str(site)) == site
    check_site(site, small_model(), 12)


def take_templates(case: tuple[list[str], str], folder: Path) -> None:
    texts, labels = case
    read_labels(labels)
    for text in read_templates(texts)[0]:
        Template.parse(text)


def take_setting(case: tuple[str, Any], folder: Path) -> None:
    override(find_preset("binding-tiny").config, dict([case]))


def take_preset(text: str, folder: Path) -> None:
    read_preset(written(folder, "mine.toml", text.encode("utf-8", "replace")))


def take_claims(text: str, folder: Path) -> None:
    read_documents(written(folder, "claims.toml", text.encode("utf-8", "replace")), find_claim)


def take_manifest(content: Any, folder: Path) -> None:
    """A run that a person opens, with its weights: whatever its manifest says they are."""
    path = folder / "run"
    if not path.exists():
        shutil.copytree(OLD_RUN, path)
    (path / "manifest.json").write_text(json.dumps(content))
    run = Run.open(path)
    run.checkpoint("last")


def take_weights(content: bytes, folder: Path) -> None:
    path = written(folder, "weights.safetensors", content)
    first: Exception | None = None
    for read in (load_checkpoint, read_finding):
        try:
            read(path)
        except Exception as problem:
            first = first if first is not None and not _is_ours(first) else problem
    if first is not None:
        raise first


def take_pickle(content: bytes, folder: Path) -> None:
    mark = folder / "executed"
    try:
        load_checkpoint(written(folder, "weights.pt", content))
    finally:
        assert not mark.exists(), "code of a pickle was executed"


def take_dataset(content: bytes, folder: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        read_result(written(folder, "result.nc", content))


def _is_ours(problem: Exception) -> bool:
    from bindscope.errors import BindscopeError

    return isinstance(problem, BindscopeError)


def written(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@cache
def small_model() -> Transformer:
    return Transformer(ModelConfig(d_vocab=11, n_positions=12, n_layers=2, n_heads=2, d_model=8, d_head=4, d_mlp=8))


@cache
def weights_file() -> bytes:
    return pack_weights(small_model().state_dict(), 3, small_model().config)


def lying_header() -> st.SearchStrategy[bytes]:
    """A safetensors file whose header says lengths, shapes and offsets that its tensors do not have."""
    end = 8 + struct.unpack("<Q", weights_file()[:8])[0]
    header, tensors = json.loads(weights_file()[8:end]), weights_file()[end:]

    def join(header: Any, length: int | None) -> bytes:
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + tensors

    return st.builds(join, changed_tree(header), st.none() | st.sampled_from([0, 1, 2**31, 2**63, 2**64 - 1]))


class Harmful:
    """Leaves a mark where it is unpickled by a reader that runs what a pickle says."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("executed"),)


@cache
def pickles() -> tuple[bytes, ...]:
    import io

    made = [pickle.dumps(Harmful(), protocol) for protocol in (0, 2, 4)]
    plain = small_model().state_dict()
    for content in (
        {"a": Harmful()},
        plain,
        {"model": plain, "model_args": Harmful()},
        {"model": plain, "model_args": {"n_layer": 10**9}},
    ):
        file = io.BytesIO()
        torch.save(content, file)
        made.append(file.getvalue())
    array = io.BytesIO()
    np.save(array, np.array([Harmful()], dtype=object), allow_pickle=True)
    return (*made, array.getvalue())


@cache
def dataset_file() -> bytes:
    made = xarray.Dataset(
        {"a": (("step", "layer"), np.arange(6.0).reshape(2, 3)), "s": ("step", ["x", "y"])}, {"step": [0, 5]}
    )
    return bytes(made.to_netcdf(engine="h5netcdf"))


def make_bomb(shape: tuple[int, ...], kind: str, dtype: str) -> bytes:
    """A small file that says it holds an array of any size, or that a part of it lies in another file."""
    import io

    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        if kind == "external":
            file.create_dataset("x", (10,), "u1", external=[("/etc/hostname", 0, 10)])
        elif kind == "link":
            file["x"] = h5py.ExternalLink("/etc/hostname", "/x")
        elif kind == "virtual":
            layout = h5py.VirtualLayout((4,), "f4")
            layout[:] = h5py.VirtualSource("other.nc", "x", (4,))
            file.create_virtual_dataset("x", layout)
        else:
            chunks = tuple(min(size, 1000) for size in shape) if kind == "chunked" else None
            packed = {"chunks": chunks, "compression": "gzip"} if chunks else {}
            file.create_dataset("x", shape, dtype, **packed)
    return memory.getvalue()


BOMBS = st.builds(
    make_bomb, st.lists(st.sampled_from([1, 3, 10**4, 10**6]), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["chunked", "chunked", "external", "link", "virtual"]), st.sampled_from(["f4", "f8", "u1", "S100"]),
)  # fmt: skip
SETTINGS = sorted(set(list_settings(find_preset("binding-tiny").config)))
TOML = preset_to_toml(find_preset("binding-tiny"))
CLAIMS = tuple(path.read_text() for path in sorted(EXAMPLE.glob("**/*.toml"))) or ('[[claim]]\nid = "x"\n',)
TARGETS: dict[str, Target] = {
    "programs": Target(near("abk=#:;!\n0159 ", ("k=9;c=k;t=6;b=c;#b:", "a=5\nb=a\n#b:")), take_program),
    "sums": Target(near("abc=|+0159 ", ("c=1 b=17 | b+19", "a=5 | a+a")), lambda text, _: AssignAddTask().read(text)),
    "sites": Target(near("L.H@,-012residp_ ", ("L1.H0.q@2,3", "L0.resid_pre", "final", "L1.mlp_out")), take_site),
    "templates": Target(
        st.tuples(
            st.lists(near("ABCx'+1 ", ("ABA", "A'+1'B", "aba-abb", "random")), max_size=3),
            near("1,-C. ", ("1,-1", "C,D")),
        ),
        take_templates,
    ),
    "settings": Target(st.tuples(st.sampled_from(SETTINGS) | st.text(max_size=12), ODD), take_setting),
    "presets": Target(near('[]="\n.a1', (TOML,)), take_preset),
    "claims": Target(near('[]="\n.a1', CLAIMS), take_claims),
    "manifests": Target(changed_tree(json.loads((OLD_RUN / "manifest.json").read_text())), take_manifest),
    "weights": Target(lying_header() | damaged(weights_file()), take_weights),
    "pickles": Target(st.sampled_from(pickles()) | st.sampled_from(pickles()).flatmap(damaged), take_pickle),
    "datasets": Target(damaged(dataset_file()) | BOMBS, take_dataset),
}
