"""Where a run comes from: the preset nearest to it, and the command that makes it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bindscope.families import family_of
from bindscope.runs.lineage import describe_lineage
from bindscope.runs.manifest import CONSTRUCTED, IMPORTED, NOTE
from bindscope.runs.placement import Placement

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.runs.manifest import Manifest
    from bindscope.studies.framework.preset import Preset

OPTIONS = {"name": "--name", "seed": "--seed", "training.steps": "--steps"}  # settings with an option of their own
NOT_TRAINED = {
    IMPORTED: "Made of checkpoint files from elsewhere.",
    CONSTRUCTED: "The ideal mechanism: weights written by hand, one head that follows the chain, one line a layer.",
}
N_CHANGES = 6  # how many are named in a description


def find_command(run: Run) -> str:
    """The command that reproduces a run, from the preset that is nearest to it; empty where no command can.

    >>> find_command(Run.open("runs/fast"))
    'bindscope train binding-tiny --name fast --set training.optimizer.lr=0.001 --threads 2'
    """
    kind = run.manifest.data.get("kind")
    if kind == CONSTRUCTED:
        return _construct_command(run)
    return _import_command(run) if kind == IMPORTED else _train_command(run)


def describe_origin(run: Run) -> str:
    """What a run is, in the words of the preset nearest to it, and what was changed; empty where none is near.

    >>> describe_origin(Run.open("runs/fast"))
    'The smallest task: … Changed: training.optimizer.lr=0.001.'
    """
    kind = run.manifest.data.get("kind")
    if kind in NOT_TRAINED:
        note = run.manifest.data.get(NOTE)
        told = [note] if isinstance(note, str) else []
        return " ".join([*told, NOT_TRAINED[kind], *describe_lineage(run.manifest.data)])
    nearest = find_nearest_preset(run)
    if nearest is None:
        return ""
    preset, changes = nearest
    changed = [f"{key}={text}" for key, text in changes.items() if key != "name"]
    if len(changed) > N_CHANGES:
        changed = [*changed[: N_CHANGES - 1], f"and {len(changed) - N_CHANGES + 1} more"]
    return preset.summary + (f" Changed: {', '.join(changed)}." if changed else "")


def find_nearest_preset(run: Run) -> tuple[Preset, dict[str, str]] | None:
    """The preset from which a run differs in the fewest settings, and these; None where no settings lead to it."""
    from bindscope.runs.changes import find_changes

    presets = {preset.name: preset for preset in family_of(run.config.task).presets()}
    found = {name: find_changes(preset.config, run.config) for name, preset in presets.items()}
    possible = {name: changes for name, changes in found.items() if changes is not None}
    if not possible:
        return None
    nearest = min(possible, key=lambda name: (len(possible[name].keys() - {"name"}), name != run.name))
    return presets[nearest], possible[nearest]


def _train_command(run: Run) -> str:
    nearest = find_nearest_preset(run)
    if nearest is None:
        return ""
    preset, changes = nearest
    own = family_of(run.config.task).location
    words = ["train", preset.name, *_options(changes), *_machine_options(run.manifest)]
    words += ["--family", own] if own else []
    return shlex.join([*_launcher(run.manifest), *words])


def _construct_command(run: Run) -> str:
    size = [f"--{name.replace('_', '-')}={run.manifest.data[name]}" for name in ("lines", "max_depth")]
    return shlex.join(["bindscope", "construct", "--name", run.name, *size, *_placing_options(run.manifest)])


def _import_command(run: Run) -> str:
    from bindscope.runs.changes import list_differences
    from bindscope.schema import to_mapping
    from bindscope.studies.framework.presets import standing_preset

    task, family = run.config.task, family_of(run.config.task)
    changes = dict(list_differences(to_mapping(standing_preset(family).config.task), to_mapping(task), "task."))
    read = tuple(f"task.{name}" for name in run.manifest.data.get("fitted", ()))
    changes = {key: text for key, text in changes.items() if not key.startswith(read)} if read else changes
    told = run.manifest.data.get("told", {})
    changes |= dict(list_differences({}, to_mapping(told), "model."))
    files = run.manifest.data["files"].values()
    location = family.location or family.option
    link = ["--link"] if any(kept.original for kept in run.manifest.checkpoints.values()) else []
    named = run.manifest.data.get("tokenizer")
    link += ["--tokenizer", str(named)] if named else []
    link += ["--note", str(run.manifest.data[NOTE])] if run.manifest.data.get(NOTE) else []
    words = ["bindscope", "import", *files, "--family", location, "--as", run.name, *link, *_options(changes)]
    return shlex.join([*words, *_placing_options(run.manifest)])


def _options(changes: Mapping[str, str]) -> list[str]:
    words: list[str] = []
    for key, text in changes.items():
        words += [OPTIONS[key], text] if key in OPTIONS else ["--set", f"{key}={text}"]
    return words


def _machine_options(manifest: Manifest) -> list[str]:
    """What the numbers depend on beyond the settings: the kind of device and how many CPU threads."""
    machine = manifest.machine
    device = ["--device", str(machine["device"])] if machine.get("device", "cpu") != "cpu" else []
    return [*device, "--threads", str(machine["threads"])] if machine.get("threads") else device


def _placing_options(manifest: Manifest) -> list[str]:
    """Where a run that was not trained here was evaluated, and in which numbers."""
    return Placement(manifest.machine.get("device", "cpu"), manifest.data.get("evaluated_in", "float32")).options


def _launcher(manifest: Manifest) -> list[str]:
    n_processes = manifest.machine.get("processes", 1)
    return ["torchrun", f"--nproc-per-node={n_processes}", "-m", "bindscope"] if n_processes > 1 else ["bindscope"]
