"""``bindscope verify``: the paper's claims against a run."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bindscope.cli.options import HERE, AtLeastOne, Cluster, Flag, Jobs, Place, Seed
from bindscope.cli.table import fill_lines, format_duration, format_table
from bindscope.errors import BindscopeError
from bindscope.runs.locate import RUNS_DIRECTORY, find_run, is_shipped, results_folders, study_results
from bindscope.runs.placement import CPU, Placement

if TYPE_CHECKING:
    from bindscope.questions.claimed import OpenedClaims
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.claims import Study
    from bindscope.studies.framework.results import Filled, Library, OnProgress, Result
    from bindscope.studies.framework.together import OnResult
    from bindscope.studies.framework.verify import Verification

Several = Annotated[tuple[str, ...], Parameter(negative="")]
N_SHOWN = 3  # quantities of a claim in the table; the page and the JSON have all


def verify(
    run: str,
    /,
    *,
    claim: Several = (),
    claims: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    result: Several = (),
    metric: Several = (),
    n: AtLeastOne | None = None,
    seed: Seed = 0,
    fresh: Flag = False,
    everything: Flag = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    place: Place = HERE,
    out: Path | None = None,
    html: bool | None = None,
    json: Flag = False,
) -> None:
    """Check the paper's claims against a run, with a verdict for each.

    Measures what is missing, keeps it in the run's results/ and uses it again as
    long as nothing it depends on has changed. Stopped with Ctrl-C it keeps what
    was finished. A shipped run is never written to: what is measured of it goes
    to runs/verify-NAME.

    Examples:
        bindscope verify binding-laptop
        bindscope verify binding-laptop --claim VB3 --claim VB4 --n 400
        bindscope verify runs/fast --fresh --json
        bindscope verify symbols
        bindscope verify binding-laptop --claims mine.toml --claim VB3

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name; or symbols, for the claims of study 3, which are about
        experiments.
    claim
        Only this claim (VB3); give it once per claim. All when left out, and none beside --claims.
    claims
        A TOML file with claims of your own (docs/own-claims.md); give it once per file.
    result
        A result of your own that they read, PATH.py:NAME; give it once per result. A file of claims cannot name code.
    metric
        A metric of your own that they ask for by its name, PATH.py:NAME (docs/metrics.md); give it once per metric.
    n
        How many programs each measurement draws; each has its own number when left out.
    seed
        The seed that draws them.
    fresh
        Measure everything again, whatever was saved.
    everything
        Also measure what no claim reads and pages and figures show, as it is saved with the shipped runs; of a run that no
        claim is about, this alone.
    out
        The directory that gets results/ and verify.html: the run itself when left out, or runs/verify-NAME for a
        shipped run.
    html
        Write the page with every figure; when left out, with the table and not with --json.
    json
        Print the verdicts as JSON instead of a table.
    """
    from bindscope.cli.failure import Interrupted
    from bindscope.studies.framework.verify import verify as verify_claims

    own = open_own(claims, result, metric)
    library, study = open_library(run, n=n, seed=seed, fresh=fresh, out=out, placement=place, own=own)
    if own is not None:
        asked = own.choose(study, claim)
    else:
        asked = [study.find_claim(name) for name in claim] or list(study.claims)
    try:
        with watch_results() as on_result:
            beside = _beside_claims(library) if everything else ()
            verification = verify_claims(library, asked, on_result, beside, jobs, cluster)
    except KeyboardInterrupt:
        kept = [filled for filled in library.filled.values() if filled.path is not None]
        message = f"interrupted; {len(kept)} results are saved in {library.folder}, give the command again to go on."
        raise Interrupted(message) from None
    if json:
        print(json_format.dumps(verification.to_mapping()))
    else:
        print(format_verification(verification))
    if html or (html is None and not json and asked):
        given = {"--claim": claim, "--claims": claims, "--result": result, "--metric": metric}
        options = "".join(f" {option} {value}" for option, values in given.items() for value in values)
        options += (f" --n {n}" if n else "") + f" --seed {seed}" + "".join(f" {word}" for word in place.options)
        page = write_page(verification, library.opened, library.folder.parent, f"bindscope verify {run}{options}")
        if not json:
            print(f"page     {page}")


def _beside_claims(library: Library) -> tuple[str, ...]:
    """Everything that is saved with a run, apart from what costs so much that it is measured only when it is asked for."""
    return tuple(name for name, result in library.results.items() if not result.on_demand)


def open_own(claims: Sequence[Path], results: Sequence[str], metrics: Sequence[str]) -> OpenedClaims | None:
    """Claims of a person's own; None where there are none."""
    if not claims:
        if results or metrics:
            raise BindscopeError("--result, --metric: claims of your own read these; name their file with --claims.")
        return None
    from bindscope.questions.claimed import open_claims

    return open_claims(claims, results, metrics)


def open_library(
    name: str,
    *,
    n: int | None = None,
    seed: int = 0,
    fresh: bool = False,
    out: Path | None = None,
    placement: Placement = CPU,
    own: OpenedClaims | None = None,
) -> tuple[Library, Study]:
    """A run's results, wherever they may be read and written, and the study whose claims are about it.

    The name of a study whose claims are about experiments gives those without a run. With claims of one's ``own``, what
    these ask is among the results, and the run's family needs no study.
    """
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.results import Library
    from bindscope.studies.framework.verify import find_study, open_study, studies_without_runs, study_or_none

    if name in studies_without_runs():
        if own is not None and own.results:
            raise BindscopeError(f"{name}: claims about experiments read saved results; a question needs a run.")
        return open_study(name, study_results(name, out=out), RUNS_DIRECTORY, n, seed, fresh)
    opened = Run.open(find_run(name), placement)
    study = (find_study if own is None else study_or_none)(opened.config.task.family)
    results = study.results if own is None else own.joined(study.results)
    folder, *also_in = _folders_of(opened, out)
    return Library(opened, results, folder, also_in, n, seed, fresh, RUNS_DIRECTORY), study


def open_run_library(name: str, *, placement: Placement = CPU, out: Path | None = None) -> tuple[Library, Study]:
    """The same of any run: where its family has no study, with the results that every run has."""
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.results import Library
    from bindscope.studies.framework.verify import study_or_none

    opened = Run.open(find_run(name), placement)
    study = study_or_none(opened.config.task.family)
    folder, *also_in = _folders_of(opened, out)
    return Library(opened, study.results, folder, also_in, runs_directory=RUNS_DIRECTORY), study


def _folders_of(run: Run, out: Path | None) -> tuple[Path, ...]:
    return results_folders(run.path, run.name, is_shipped(run.path), out=out, placement=run.placement)


def format_verification(verification: Verification) -> str:
    """The table of verdicts, the reason for each, and where the results came from."""
    rows = []
    for judged in verification.judged:
        quantities = [str(quantity) for quantity in judged.finding.quantities[:N_SHOWN]] or ["–"]
        left = [f"{judged.claim.id} {judged.claim.title}", judged.claim.paper]
        rows.append([*left, quantities[0], judged.finding.verdict])
        rows += [["", "", quantity, ""] for quantity in quantities[1:]]
    if not rows:
        head = f"{verification.run}: no published claims are about runs of this family"
        return "\n\n".join([head, "\n".join(_describe_origins(verification))]) + "\n"
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verification.counts.items() if count)
    reasons = [f"{judged.claim.id}  {judged.finding.reason}" for judged in verification.judged]
    parts = [
        f"{verification.run}: {counts}; fractions with 95 % intervals",
        format_table(["claim", "paper", "this run", "verdict"], rows),
        fill_lines("\n".join(reasons)),
        "\n".join(_describe_origins(verification)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def write_page(verification: Verification, run: Run | None, directory: Path, command: str) -> Path:
    """The self-contained HTML page, as verify.html in ``directory``."""
    from bindscope.runs.files import explain_failure, write_atomically
    from bindscope.studies.plots.verify_page import render_verification

    page = render_verification(verification, command, {} if run is None else run.manifest.config)
    path = directory / "verify.html"
    with explain_failure(path):
        directory.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode())
    return path


@contextmanager
def watch_results() -> Iterator[OnResult]:
    """A bar on standard error, where someone watches: which result is being made, and how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=1.0)

        def on_result(result: Result, index: int, total: int) -> OnProgress:
            progress.update(bar, total=float(total), completed=float(index))
            progress.update(bar, description=f"{index + 1}/{total} {result.title}")

            def advance(done: int, of: int) -> None:
                progress.update(bar, completed=index + done / max(of, 1))

            return advance

        yield on_result


def _describe_origins(verification: Verification) -> Iterator[str]:
    made = [
        filled for filled in verification.filled.values() if filled.origin == "computed" and filled.dataset is not None
    ]
    kept = [filled for filled in verification.filled.values() if filled.origin == "kept"]
    if made:
        seconds = format_duration(sum(filled.seconds for filled in made))
        yield f"measured {_names(made)} in {seconds}, saved in {made[0].path.parent if made[0].path else '–'}"
    if kept:
        folders = sorted({str(filled.path.parent) for filled in kept if filled.path})
        yield f"read     {_names(kept)} from {', '.join(folders)}"
    yield from (f"note     {filled.note}" for filled in verification.filled.values() if filled.note)


def _names(filled: Sequence[Filled]) -> str:
    return ", ".join(result.name for result in filled)
