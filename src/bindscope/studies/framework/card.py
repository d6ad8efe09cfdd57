"""The model card of a checkpoint: what a reader of an exported directory should know, from the run's own files.

>>> card = render_card(run, 1000, read_verdicts(run))
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bindscope.families import family_of
from bindscope.runs.directory import Run
from bindscope.runs.locate import is_shipped, results_folders
from bindscope.runs.manifest import IMPORTED
from bindscope.studies.framework.command import describe_origin, find_command
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import Judged, judge_kept

USE = """\
```python
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("THIS_DIRECTORY")
```

`bindscope import THIS_DIRECTORY --as NAME` makes a run of it, which every command and the page take.
`bindscope sample TASK` prints what it is asked. `bindscope.read_model("THIS_DIRECTORY")` opens it in Python."""
HEAD = "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- bindscope\n---"


def read_verdicts(run: Run) -> list[Judged]:
    """The claims about a run as its saved results judge them; nothing is measured and nothing saved."""
    study = family_of(run.config.task).study()
    folders = [folder for folder in results_folders(run.path, run.name, is_shipped(run.path)) if _has_results(folder)]
    if study is None or not folders:
        return []
    with TemporaryDirectory() as scratch:  # results that take no time are made, and belong to nobody
        library = Library(run, study.results, Path(scratch), folders)
        found = [judge_kept(library, claim) for claim in study.claims]
    return [judged for judged in found if isinstance(judged, Judged)]


def render_card(run: Run, step: int, verdicts: Sequence[Judged]) -> str:
    """The card of one checkpoint as Markdown; ``verdicts`` are about the whole run."""
    parts = [
        HEAD,
        f"# {run.name}, step {step:,}",
        describe_origin(run),
        _table(("what", "value"), _facts(run, step)),
        "## Use it",
        USE.replace("TASK", run.config.task.family),
        "## Accuracy at this step",
        _accuracy(run, step),
        "## Settings",
        f"```json\n{json.dumps(_settings(run), indent=1, ensure_ascii=False)}\n```",
    ]
    if verdicts:
        parts += [
            "## Claims",
            "Verdicts of `bindscope verify` on the whole run, from the results that were saved when this was written; claims that are not named were not measured.",
            "\n".join(f"- **{each.claim.id} {each.claim.title}**: {_verdict(each)}" for each in verdicts),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(run: Run, step: int) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    command = find_command(run) if manifest.data.get("kind") != IMPORTED else ""  # it would tell local paths
    yield "task", run.config.task.family
    yield "step", f"{step:,} of {manifest.total_steps:,}"
    yield "parameters", f"{run.config.model.n_parameters:,}"
    yield "seed", str(run.config.seed) if manifest.seeds else "not known"
    yield "data", ", ".join(f"{name} {manifest.data[name]}" for name in ("kind", "sha256") if name in manifest.data)
    yield "weights", f"sha256 {manifest.checkpoints[step].sha256}"
    yield "made with", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    if command:
        yield "made by", f"`{command}`"


def _settings(run: Run) -> dict[str, Any]:
    """All of a run that was trained here; of others the task and the model, as nothing else is known of them."""
    known = (
        run.manifest.config if run.manifest.seeds else {name: run.manifest.config[name] for name in ("task", "model")}
    )
    return {name: value for name, value in known.items() if name not in ("name", "seed")}


def _accuracy(run: Run, step: int) -> str:
    record = next((record for record in run.metrics if record["step"] == step), None)
    if record is None:
        return "It was not evaluated at this step."
    splits = {name: split for name, split in record.items() if isinstance(split, Mapping) and "accuracy" in split}
    rows = [(name, _percent(split["accuracy"]), str(split.get("n", "–"))) for name, split in splits.items()]
    watched = record.get("watched", {})
    rows += [(name, _percent(value), "–") for name, value in watched.items() if name not in splits]
    return _table(("on", "accuracy", "n"), rows)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}".replace("%", " %")


def _verdict(judged: Judged) -> str:
    sources = f" (from {', '.join(judged.sources)})" if judged.sources else ""
    return f"*{judged.finding.verdict}*{sources}. {judged.finding.reason}"


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _has_results(folder: Path) -> bool:
    return any(folder.glob("*.nc"))
