"""Read everything that a run has on disk and name what is wrong. Nothing is changed.

>>> for found in check_folder(Path("runs")):
...     print(found.path, found.n_files, *found.damaged, *found.notes)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.convert.checkpoint import check_names_and_shapes, check_size
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import FOLDERS, MANIFEST, METRICS, Run
from bindscope.runs.files import TEMPORARY, is_sealed, read_bytes
from bindscope.runs.lock import LOCK_FILE
from bindscope.runs.results import read_result

STATE = "latest.json"


@dataclass
class Checked:
    """What was found in a run, or in a dataset that is no run's: sentences, each with the file it is about."""

    path: Path
    n_files: int = 0
    damaged: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # nothing that would be used by mistake

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Something that must be readable."""
        self.n_files += 1
        try:
            yield
        except BindscopeError as problem:
            self.damaged.append(str(problem))


def check_folder(folder: Path, on_file: Callable[[Path], None] = lambda path: None) -> Iterator[Checked]:
    """A run, a dataset, or all of both under a folder, in the order of their names."""
    if (folder / MANIFEST).exists():
        yield check_run(folder, on_file)
    elif folder.suffix == ".nc":
        yield check_dataset(folder)
    elif folder.is_dir() and not folder.is_symlink():
        for path in sorted(folder.iterdir()):
            if not path.name.startswith(TEMPORARY):
                yield from check_folder(path, on_file)


def check_dataset(path: Path) -> Checked:
    """A dataset that is no run's, as experiments have."""
    found = Checked(path)
    _read_dataset(found, path)
    return found


def check_run(path: Path, on_file: Callable[[Path], None] = lambda path: None) -> Checked:
    """Every file of a run: whether it is what was recorded when it was written."""
    found = Checked(path)
    with found.reading():
        run = Run.open(path)
    if found.damaged:
        return found
    with found.reading():
        _ = run.metrics
    if run.manifest.evaluations is None:
        found.notes.append(f"{path / MANIFEST}: of an earlier format, without hashes of manifest and evaluations.")
    _check_weights(found, run, on_file)
    if (path / "optimizer" / STATE).exists() or run.status in ("training", "interrupted"):
        on_file(path / "optimizer" / STATE)
        with found.reading():
            run.load_state()
    for file in sorted((path / "results").rglob("*.nc")):  # those of series are deeper
        on_file(file)
        _read_dataset(found, file)
    _find_strangers(found, run)
    return found


def _check_weights(found: Checked, run: Run, on_file: Callable[[Path], None]) -> None:
    model: dict[str, Tensor] | None = None  # made once, of the first weights that can fill it
    is_transformer = False
    with found.reading():
        is_transformer = run.config.baseline is None
    found.n_files -= 1  # settings are in the manifest
    for step, entry in run.manifest.checkpoints.items():
        file = run.path / "checkpoints" / entry.file
        on_file(file)
        with found.reading():
            tensors = run.weights(step)
            if is_transformer:
                check_size(run.config.model, tensors, str(file))
                model = model or Transformer(run.config.model).state_dict()
                check_names_and_shapes(model, tensors, str(file))


def _read_dataset(found: Checked, path: Path) -> None:
    with found.reading():
        read_result(path)
        if not is_sealed(read_bytes(path, "this result")):
            found.notes.append(f"{path}: of an earlier version, without a hash of its own.")


def _find_strangers(found: Checked, run: Run) -> None:
    """What nobody would read: it is no harm, but no part of the run either."""
    known = {MANIFEST, METRICS, LOCK_FILE, *FOLDERS}
    known |= {f"checkpoints/{entry.file}" for entry in run.manifest.checkpoints.values()}
    for path in sorted(run.path.rglob("*")):
        name, where = path.relative_to(run.path).as_posix(), path.parent.name
        if path.is_symlink():
            found.notes.append(f"{path}: a link to {path.readlink()}, which is read from there.")
        elif path.name.startswith(TEMPORARY):
            found.notes.append(f"{path}: left by a process that was killed while it wrote it; resuming removes it.")
        elif name not in known and where == "checkpoints":
            found.notes.append(f"{path}: the manifest does not name this checkpoint, so it is not used.")
        elif not path.is_file() and not path.is_dir():
            found.notes.append(f"{path}: not a plain file; it is not read.")
