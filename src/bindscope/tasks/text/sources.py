"""Where a text comes from: files, directories, dataset directories of Hugging Face, or Python's own documentation."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.tasks.text.tables import TABLES, read_table

LIBRARY = "python-library"
PLAIN = (".txt", ".md", ".rst", ".py", ".text")  # what is read of a directory
WIKITEXT = (".raw", ".tokens")  # and of one that names its splits
SPLIT_WORDS = {"train": "train", "training": "train", "valid": "validation", "validation": "validation",
               "dev": "validation", "val": "validation", "test": "test"}  # fmt: skip
NOT_LIBRARY = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__"}


@dataclass(frozen=True, eq=False)
class Source:
    """What was read: documents by split; ``train`` alone where the source names no splits."""

    name: str
    splits: Mapping[str, Sequence[str]]
    description: str


def read_source(source: str, column: str = "text") -> Source:
    """All documents of a source, by the splits that it names.

    >>> read_source("wikitext-2-raw").splits.keys()
    dict_keys(['train', 'validation', 'test'])
    """
    if not source:
        raise BindscopeError(
            "task.source: name the text to train on: a file or directory, or "
            f"{LIBRARY} for Python's own documentation (--set task.source=PATH)."
        )
    if source == LIBRARY:
        return _read_library()
    path = Path(source).expanduser()
    if not path.exists():
        raise BindscopeError(
            f"task.source: there is no file or directory '{source}'; give the path of a text, or put it back there."
        )
    files = [path] if path.is_file() else _list_files(path)
    if not files:
        raise BindscopeError(
            f"task.source: '{source}' holds no text: no file that ends with {', '.join((*PLAIN, *TABLES))}."
        )
    by_split = _by_split(files, path)
    splits = {name: _read_files(chosen, column) for name, chosen in by_split.items()}
    n_files = sum(map(len, by_split.values()))
    return Source(source, splits, f"{path.name}: {n_files} file{'s' if n_files > 1 else ''}")


def _list_files(directory: Path) -> list[Path]:
    """Tables where there are any (a dataset's card is no part of it), else files that name a split, else plain text."""
    found = sorted(
        (file for file in directory.rglob("*") if file.is_file() and not _is_hidden(file, directory)),
        key=lambda file: file.relative_to(directory).as_posix(),
    )
    for endings in (TABLES, WIKITEXT, PLAIN):
        chosen = [file for file in found if file.suffix in endings]
        if chosen:
            return chosen
    return []


def _is_hidden(file: Path, directory: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(directory).parts)


def _by_split(files: Sequence[Path], root: Path) -> dict[str, list[Path]]:
    """Files by the split that their name, or their folder's, says; all are training text where none says ``train``."""
    if files == [root]:
        return {"train": [root]}
    named: dict[str, list[Path]] = {}
    for file in files:
        split = _split_of(file, root)
        if split is not None:
            named.setdefault(split, []).append(file)
    if "train" not in named:
        return {"train": list(files)}
    _refuse_several_datasets(named["train"], root)
    return named


def _split_of(file: Path, root: Path) -> str | None:
    """``data/train-00000-of-00001.parquet``, ``wiki.test.raw`` and ``validation/data.arrow`` say it."""
    names = [file.name, *reversed(file.relative_to(root).parts[:-1])]
    for name in names:
        for word in re.split(r"[^a-z]+", name.lower()):
            if word in SPLIT_WORDS:
                return SPLIT_WORDS[word]
    return None


def _refuse_several_datasets(files: Sequence[Path], root: Path) -> None:
    """A clone of a dataset may hold several configurations of it, each in a folder of its own."""
    folders = sorted({file.parent.relative_to(root).as_posix() for file in files})
    if len(folders) > 1:
        raise BindscopeError(
            f"task.source: '{root}' holds training text in several folders ({', '.join(folders[:4])}"
            f"{', …' if len(folders) > 4 else ''}); name one of them."
        )


def _read_files(files: Iterable[Path], column: str) -> list[str]:
    documents = []
    for file in files:
        documents += read_table(file, column) if file.suffix in TABLES else [_read_plain(file)]
    return [document for document in documents if document]


def _read_plain(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as problem:
        raise BindscopeError(
            f"task.source: {file} is not UTF-8 text (byte {problem.start}); convert it, or name only the text files."
        ) from None
    except OSError as problem:
        raise BindscopeError(f"task.source: {file} cannot be read: {problem.strerror}.") from None


def _read_library() -> Source:
    """The topics of Python's manual and the documentation of its library's modules, one document each.

    Their order follows the hash of their names, so that the parts cut from the end are like the rest.
    """
    documents = {**_manual_topics(), **_module_documentation(Path(os.__file__).parent)}
    order = sorted(documents, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    digest = hashlib.sha256("".join(f"{name}\0{documents[name]}\0" for name in order).encode()).hexdigest()
    description = (
        f"the documentation of Python {platform.python_version()}: {len(documents)} topics and modules, "
        f"{sum(map(len, documents.values())):,} characters, sha256 {digest[:16]}"
    )
    return Source(LIBRARY, {"train": [documents[name] for name in order]}, description)


def _manual_topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError:  # some distributions leave it out
        return {}
    return {f"topic {name}": text.rstrip() + "\n" for name, text in topics.items()}


def _module_documentation(library: Path) -> dict[str, str]:
    """All documentation strings of each module, in the order they stand in it."""
    documents = {}
    for file in sorted(library.rglob("*.py")):
        path = file.relative_to(library)
        if NOT_LIBRARY & set(path.parts):
            continue
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, OSError):
            continue
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
        nodes.sort(key=lambda node: getattr(node, "lineno", 0))
        strings = [text for text in (ast.get_docstring(node) for node in nodes) if text]
        if strings:
            documents[f"module {path.as_posix()}"] = "\n\n".join(strings) + "\n"
    return documents
