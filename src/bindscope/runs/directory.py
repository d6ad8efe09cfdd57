"""A run on disk, the only code that touches one.

    manifest.json                           what it is: config, seeds, versions, hashes, the index of checkpoints
    metrics.jsonl                           one JSON object per evaluation
    checkpoints/step_00001000.safetensors   weights; of a linked checkpoint they are where the manifest says
    optimizer/latest.json                   points to the state a killed run goes on from, with its hash
    results/*.nc                            labelled arrays that studies made
    results/grid-series/NAME/step_*.nc      of a series, one file for each checkpoint

Files are replaced whole, and an index is written after what it names: a kill between the two leaves a file nobody
points to, never a pointer to half a file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bindscope.errors import BindscopeError, NotYet, suggest_nearest
from bindscope.runs.files import (
    hash_json,
    read_json,
    read_verified,
    remove_unfinished,
    sync_directory,
    write_atomically,
)
from bindscope.runs.folders import new_directory
from bindscope.runs.lineage import LINEAGE, Descent
from bindscope.runs.locate import is_shipped
from bindscope.runs.lock import is_locked
from bindscope.runs.manifest import KeptCheckpoint, Manifest, Original, Status, read_manifest
from bindscope.runs.metrics import append_metrics, read_metrics, record_metrics, truncate_metrics
from bindscope.runs.placement import CPU, Placement
from bindscope.runs.results import read_result, write_result
from bindscope.schema import to_mapping

if TYPE_CHECKING:
    import xarray
    from torch import Tensor, nn

    from bindscope.model.transformer import Transformer
    from bindscope.runs.config import RunConfig
    from bindscope.training.state import Tally, TrainingState

MANIFEST, METRICS = "manifest.json", "metrics.jsonl"
FOLDERS = ("checkpoints", "optimizer", "results")
TALLY, RUN = "tally", "run"  # of a state's metadata: the numbers besides tensors, and whose state it is


class Run:
    """One run. Reading never changes it; the ``keep_…`` methods are what training hands its results to.

    >>> trained = Run.open("runs/binding-tiny")
    >>> trained.checkpoint("last").config.n_layers
    >>> [record["test"]["accuracy"] for record in trained.metrics]
    """

    def __init__(self, path: Path, manifest: Manifest, placement: Placement = CPU) -> None:
        self.path = path
        self.manifest = manifest
        self.placement = placement  # of the models that are read from it

    @classmethod
    def open(cls, path: Path | str, placement: Placement = CPU) -> Run:
        """The run in a directory; ``placement`` is for the models that are read from it."""
        path, placement = Path(path), placement.check()
        if not path.exists():
            raise BindscopeError(f"{path}: no such run.{_suggest_sibling(path)}")
        if not (path / MANIFEST).is_file():
            raise BindscopeError(f"{path}: not a run: it has no {MANIFEST}.")
        return cls(path, read_manifest(path / MANIFEST), placement)

    @classmethod
    def create(cls, path: Path | str, manifest: Manifest) -> Run:
        """A new, empty run; a directory that holds anything is refused."""
        path = Path(path)
        with new_directory(path) as unfinished:
            write_empty_run(unfinished, manifest)
        return cls(path, manifest)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.manifest.name

    @property
    def called(self) -> str:
        """What a command calls it by: a shipped run's name, the path of any other."""
        return self.path.name if is_shipped(self.path) else str(self.path)

    @cached_property
    def config(self) -> RunConfig:
        """Every setting that it was trained with."""
        from bindscope.families import UnknownFamily
        from bindscope.runs.config import config_from_mapping

        try:
            return config_from_mapping(self.manifest.config, f"{self.path / MANIFEST}: config")
        except UnknownFamily as unknown:
            trained = f" (it was trained with {self.manifest.family_from})" if self.manifest.family_from else ""
            raise UnknownFamily(
                f"{self.path}: its task is of the family '{unknown.name}', which is not known here; say --family "
                f"PATH:NAME{trained}.",
                unknown.name,
            ) from None

    @property
    def status(self) -> Status | Literal["interrupted"]:
        """As the manifest says, except that a run nobody is training any more was interrupted."""
        if self.manifest.status == "training" and not is_locked(self.path):
            return "interrupted"
        return self.manifest.status

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """Every evaluation, in the order of the steps."""
        return read_metrics(self.path / METRICS, self.manifest.evaluations)

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps whose weights are saved."""
        return tuple(sorted(self.manifest.checkpoints))

    def only(self, steps: Iterable[int]) -> Run:
        """The same run as if it had saved these of its checkpoints alone."""
        chosen = {step: self.manifest.checkpoints[step] for step in steps}
        return Run(self.path, dataclasses.replace(self.manifest, checkpoints=chosen), self.placement)

    def nearest_step(self, step: int) -> int:
        """The saved step closest to ``step``, the earlier one of two."""
        self._require_checkpoints()
        return min(self.steps, key=lambda kept: (abs(kept - step), kept))

    def find_step(self, step: int | str) -> int:
        """A saved step from a number, ``first`` or ``last``; anything else is refused with the nearest one."""
        self._require_checkpoints()
        if step in ("first", "last"):
            return self.steps[0 if step == "first" else -1]
        if isinstance(step, str) and not (step.isascii() and step.isdigit()):
            raise BindscopeError(f"{self.called}: step {step!r}: give a number, 'first' or 'last'.")
        number = int(step)
        if number not in self.manifest.checkpoints:
            evaluated = self.manifest.thinned and any(record["step"] == number for record in self.metrics)
            lacks = "was evaluated, but its weights are not in this copy of the run" if evaluated else "was not saved"
            raise BindscopeError(f"{self.called}: step {number} {lacks}; the nearest is {self.nearest_step(number)}.")
        return number

    def weights(self, step: int | str = "last") -> dict[str, Tensor]:
        """The tensors of a checkpoint as they are stored, after their hash was checked."""
        from bindscope.runs.originals import read_linked
        from bindscope.runs.weights import unpack_tensors

        kept = self.manifest.checkpoints[self.find_step(step)]
        if kept.original is not None:
            return read_linked(kept.original, self.config.model).state_dict()
        return unpack_tensors(self.weights_file(step), self.path / "checkpoints" / kept.file, "this checkpoint")

    def weights_file(self, step: int | str = "last") -> bytes:
        """A checkpoint's safetensors file as it is, after its hash was checked; made anew of one that is linked."""
        from bindscope.runs.weights import pack_weights

        step = self.find_step(step)
        kept = self.manifest.checkpoints[step]
        if kept.original is not None:
            return pack_weights(self.weights(step), step, self.config.model)
        return read_verified(self.path / "checkpoints" / kept.file, kept.sha256, "this checkpoint")

    def checkpoint(self, step: int | str = "last") -> Transformer:
        """The model as it was at ``step``, in evaluation mode where the run was opened to have it: on the CPU, usually."""
        from bindscope.model.convert.checkpoint import build_model

        step = self.find_step(step)
        if self.config.baseline is not None:
            raise BindscopeError(
                f"{self.called}: trained a {self.config.baseline.kind}, which has no attention to look into; name a run of a "
                "transformer."
            )
        where = str(self.path / "checkpoints" / self.manifest.checkpoints[step].file)
        return self.placement.place(build_model(self.config.model, self.weights(step), where))

    def keep_weights(self, step: int, model: nn.Module) -> None:
        """Training hands over the weights of a step."""
        self.write_checkpoint(step, model.state_dict())

    def keep_evaluation(self, record: Mapping[str, Any]) -> None:
        """Training hands over an evaluation."""
        recorded = append_metrics(self.path / METRICS, record, self.manifest.evaluations)
        self._update(evaluations=recorded)

    def keep_state(self, state: TrainingState) -> None:
        """Training hands over the state to resume from; the one before is deleted once this one is safe."""
        from bindscope.runs.weights import pack_tensors

        step = state.tally.step
        tensors = {f"weights/{name}": value for name, value in state.weights.items()}
        tensors |= {f"optimizer/{name}": value for name, value in state.optimizer.items()}
        file = _step_file(step)
        folder = self.path / "optimizer"
        told = {TALLY: json.dumps(dataclasses.asdict(state.tally)), RUN: self._identity}
        pointer = {"file": file, "sha256": write_atomically(folder / file, pack_tensors(tensors, told))}
        write_atomically(folder / "latest.json", json.dumps(pointer, indent=1).encode())
        _delete_others(folder, {file, "latest.json"})
        self.settle_stages(state.tally)
        self.settle_status(state.tally)

    def load_state(self) -> TrainingState | None:
        """The state to go on from; None for a run that was killed before its first one was saved."""
        from bindscope.runs.weights import unpack_metadata, unpack_tensors
        from bindscope.training.state import TrainingState, read_tally

        if self.manifest.thinned:
            raise BindscopeError(
                f"{self.called}: a compact copy of a run holds no state to resume from; train it again."
            )
        latest = self.path / "optimizer" / "latest.json"
        if not latest.exists() and max(self.steps, default=0) == 0:
            return None
        pointer = read_json(latest, "the state to resume from")
        if not isinstance(pointer, dict) or not {"file", "sha256"} <= set(pointer):
            raise BindscopeError(f"{latest}: the state to resume from is damaged.")
        path = latest.parent / Path(str(pointer["file"])).name
        content = read_verified(path, str(pointer["sha256"]), "the state to resume from")
        tensors, told = unpack_tensors(content, path, "the state"), unpack_metadata(content)
        if told.get(RUN, self._identity) != self._identity:
            raise BindscopeError(f"{path}: this state is of another run; put back the run's own.")
        try:
            tally = read_tally(json.loads(told[TALLY]) if TALLY in told else pointer["tally"])
        except (TypeError, KeyError):
            raise BindscopeError(f"{latest}: the state to resume from is damaged.") from None
        weights = {name.removeprefix("weights/"): t for name, t in tensors.items() if name.startswith("weights/")}
        optimizer = {name.removeprefix("optimizer/"): t for name, t in tensors.items() if name.startswith("optimizer/")}
        return TrainingState(tally, weights, optimizer)

    def settle_stages(self, tally: Tally) -> None:
        """Say in the manifest at which step each stage of the data began."""
        if tuple(self.manifest.stage_starts) != tally.stage_starts:
            self._update(stage_starts=tally.stage_starts)

    def settle_status(self, tally: Tally) -> None:
        """Say in the manifest that training has ended, once it has."""
        if tally.finished:
            early = tally.streak and tally.step < self.manifest.total_steps  # a target was reached before the end
            status = "stopped early" if early else "finished"
            if self.manifest.status != status:
                self._update(status=status)

    def rewind(self, step: int) -> None:
        """Forget what lies after ``step``, which a resumed run makes again, and what a kill left unfinished."""
        for folder in (self.path, *(self.path / name for name in FOLDERS)):
            remove_unfinished(folder)
        kept = {kept_step: entry for kept_step, entry in self.manifest.checkpoints.items() if kept_step <= step}
        recorded = record_metrics(self.path / METRICS, step, self.manifest.evaluations)
        if len(kept) < len(self.manifest.checkpoints) or recorded != self.manifest.evaluations:
            self._update(checkpoints=kept, evaluations=recorded)
        truncate_metrics(self.path / METRICS, recorded)

    def write_checkpoint(
        self, step: int, tensors: Mapping[str, Tensor], dtype: Literal["float32", "float16"] = "float32"
    ) -> None:
        from bindscope.runs.weights import pack_weights

        content = pack_weights(tensors, step, self.config.model, dtype)
        sha256 = write_atomically(self.path / "checkpoints" / _step_file(step), content)
        self._index(step, KeptCheckpoint(_step_file(step), sha256, len(content), dtype))

    def link_checkpoint(self, step: int, tensors: Mapping[str, Tensor], original: Original) -> None:
        """Index a checkpoint that stays where it is, under the hash that a copy would have."""
        from bindscope.runs.weights import pack_weights

        content = pack_weights(tensors, step, self.config.model)
        sha256 = hashlib.sha256(content).hexdigest()
        self._index(step, KeptCheckpoint(_step_file(step), sha256, len(content), "float32", original))

    def keep_lineage(self, step: int, descent: Descent) -> None:
        """Say in the manifest how far the weights of a step are from those of the one before."""
        lineage = {**self.manifest.data.get(LINEAGE, {}), str(step): to_mapping(descent)}
        self._update(data={**self.manifest.data, LINEAGE: lineage})

    @property
    def result_names(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in (self.path / "results").glob("*.nc")))

    def save_result(self, name: str, result: xarray.Dataset) -> Path:
        """Keep a labelled array under ``results/NAME.nc``, replacing one of that name."""
        return write_result(self.path / "results", name, result)

    def result(self, name: str) -> xarray.Dataset:
        path = self.path / "results" / f"{name}.nc"
        if not path.exists():
            raise BindscopeError(f"{self.called}: no result {name!r}.{suggest_nearest(name, self.result_names)}")
        return read_result(path)

    @property
    def _identity(self) -> str:
        """What tells this run from any other, whatever happens to it: its settings, seeds and the moment it began."""
        began = self.manifest
        return hash_json([to_mapping(began.config), dict(began.seeds), began.created])

    def _index(self, step: int, entry: KeptCheckpoint) -> None:
        self._update(checkpoints={**self.manifest.checkpoints, step: entry})

    def _update(self, **changes: Any) -> None:
        self.manifest = dataclasses.replace(self.manifest, **changes)
        write_atomically(self.path / MANIFEST, self.manifest.to_json())

    def _require_checkpoints(self) -> None:
        if not self.steps:
            raise NotYet(f"{self.called}: no checkpoint was saved yet.")


def list_runs(folder: Path | str) -> tuple[list[Run], list[str]]:
    """The runs directly under ``folder`` by name, and a sentence for each that cannot be read."""
    runs, problems = [], []
    for manifest in sorted(Path(folder).glob(f"*/{MANIFEST}")):
        if manifest.parent.name.startswith("."):
            continue
        try:
            runs.append(Run.open(manifest.parent))
        except BindscopeError as problem:
            problems.append(str(problem))
    return runs, problems


def write_empty_run(directory: Path, manifest: Manifest) -> None:
    """The files of a run with nothing in it, in a directory that exists."""
    for folder in FOLDERS:
        (directory / folder).mkdir()
    sync_directory(directory)
    write_atomically(directory / MANIFEST, manifest.to_json())


def _step_file(step: int) -> str:
    return f"step_{step:08d}.safetensors"


def _delete_others(folder: Path, wanted: Iterable[str]) -> None:
    for path in folder.iterdir():
        if path.name not in wanted and path.name.startswith("step_"):
            path.unlink(missing_ok=True)


def _suggest_sibling(path: Path) -> str:
    names = [manifest.parent.name for manifest in path.parent.glob(f"*/{MANIFEST}")]
    return suggest_nearest(path.name, names) if names else ""
