"""The lab as plain files: the built page, and every body that a server would send, under the same addresses.

    site/index.html                        the page, with its content-security policy inside
    site/assets/…                          its scripts and styles
    site/api/runs.json                     what GET /api/runs.json answers, byte for byte
    site/api/runs/NAME/weights/3700.safetensors    for the reader's browser, which runs small models itself
    site/bindscope-export.json             says that this is an export, which may be replaced

All addresses are relative, so the directory works from any sub-path of any file server.

>>> export_site(Lab.open([find_run("binding-laptop")]), Path("site"))
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bindscope
from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure
from bindscope.runs.folders import hidden_folder, new_directory
from bindscope.web.app import static_directory
from bindscope.web.body import Body
from bindscope.web.lab import Lab
from bindscope.web.page import BYTES, SVG, Page, Parameters, Resource
from bindscope.web.pages import PAGES
from bindscope.web.security import HEADERS, POLICY
from bindscope.web.stored import Stored

MARKER = "bindscope-export.json"
ONLY_HEADERS = ("frame-ancestors",)  # what a page cannot say of itself
MOST_ROUNDS = 2  # making a missing result for one body changes what others say: then all are written once more
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Export:
    """What was written, and what no file could be made of."""

    directory: Path
    n_files: int
    n_bytes: int
    skipped: tuple[tuple[str, str], ...]  # (path, why)


def export_site(
    lab: Lab,
    directory: Path,
    *,
    weights: bool = True,
    replace: bool = False,
    pages: tuple[Page, ...] = PAGES,
    page: Path | None = None,
    on_progress: Progress | None = None,
) -> Export:
    """Write the whole site to ``directory``, all of it or nothing.

    What a run cannot give is left out and listed: the page then says what it says of any missing body. ``weights``
    copies the checkpoints of small models. ``replace`` allows ``directory`` to be an earlier export.
    """
    built = static_directory() if page is None else page
    if not (built / "index.html").is_file():
        raise BindscopeError(f"{built}: the page has not been built; run 'npm run build' in frontend/ first.")
    refuse_to_overwrite(directory, replace)
    still = Lab(lab.runs.values(), lab.kept_in, live=False)
    wanted = partial(list_files, still, pages, weights)
    with nullcontext(directory) if not is_filled(directory) else hidden_folder(directory) as folder:
        with new_directory(folder) as unfinished:
            skipped = _write_site(still, wanted, built, unfinished, directory, on_progress)
        if folder != directory:
            _swap_in(folder, directory)
    files = [file for file in directory.rglob("*") if file.is_file()]
    return Export(directory, len(files), sum(file.stat().st_size for file in files), skipped)


def list_files(lab: Lab, pages: tuple[Page, ...] = PAGES, weights: bool = True) -> list[tuple[Resource, Parameters]]:
    """Every body that a server of this lab offers; last those that describe runs, whose results are all there by then."""
    found = [
        (resource, parameters)
        for page in pages
        for resource in page.resources
        if weights or resource.media != BYTES
        for parameters in resource.instances(lab)
    ]
    return sorted(found, key=lambda each: each[0].model is not Body)


def add_policy(index: str) -> str:
    """The page with the server's content-security policy inside, as far as a page may say it of itself."""
    head, found, rest = index.partition('<meta charset="utf-8" />')
    if not found:
        raise BindscopeError("the built page has no folder for its policy; build it again.")
    rules = "; ".join(f"{name} {value}" for name, value in POLICY.items() if name not in ONLY_HEADERS)
    policy = f'<meta http-equiv="Content-Security-Policy" content="{rules}" />'
    referrer = f'<meta name="referrer" content="{HEADERS["Referrer-Policy"]}" />'
    return f"{head}{found}\n    {policy}\n    {referrer}{rest}"


def refuse_to_overwrite(directory: Path, replace: bool) -> None:
    """Only an empty folder, or with ``replace`` an earlier export, is written to."""
    if not is_filled(directory):
        return
    if not (directory / MARKER).is_file():
        raise BindscopeError(f"{directory}: is not empty and not an earlier export; choose another directory.")
    if not replace:
        raise BindscopeError(f"{directory}: holds an earlier export; say --replace to write it again.")


def is_filled(directory: Path) -> bool:
    return directory.exists() and not (directory.is_dir() and not any(directory.iterdir()))


def _write_site(
    lab: Lab,
    wanted: Callable[[], list[tuple[Resource, Parameters]]],
    built: Path,
    unfinished: Path,
    directory: Path,
    on_progress: Progress | None,
) -> tuple[tuple[str, str], ...]:
    """Page, bodies and marker; what no file could be made of is returned."""
    with explain_failure(directory):
        shutil.copytree(built, unfinished, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        index = (unfinished / "index.html").read_text()
        (unfinished / "index.html").write_text(add_policy(index))
    stored = Stored(lab)
    bodies = [each for each in wanted() if each[0].media != SVG]
    for _ in range(MOST_ROUNDS):
        version = lab.version
        skipped = _write_bodies(stored, bodies, unfinished, directory, on_progress)
        if lab.version == version:
            break
    figures = [each for each in wanted() if each[0].media == SVG]  # drawn of what is saved by now, and once only
    skipped += _write_bodies(stored, figures, unfinished, directory, on_progress)
    marker = {"bindscope": bindscope.__version__, "runs": list(lab.runs)}
    (unfinished / MARKER).write_text(json.dumps(marker) + "\n")
    return skipped


def _write_bodies(
    stored: Stored,
    wanted: list[tuple[Resource, Parameters]],
    unfinished: Path,
    directory: Path,
    on_progress: Progress | None,
) -> tuple[tuple[str, str], ...]:
    skipped = []
    wanted = wanted[
        ::-1
    ]  # the list of runs last: it says the version of each, and making a missing result changes that
    for done, (resource, parameters) in enumerate(wanted, start=1):
        path = resource.path.format(**parameters)
        try:
            content = stored.read(resource, parameters)
        except BindscopeError as problem:
            skipped.append((path, str(problem)))
        else:
            with explain_failure(directory):
                folder = unfinished / "api" / path
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.write_bytes(content)
        if on_progress is not None:
            on_progress(done, len(wanted))
    return tuple(skipped)


def _swap_in(new: Path, directory: Path) -> None:
    """Put a finished export where an earlier one stands, which stays until the new one is there."""
    with hidden_folder(directory) as old, explain_failure(directory):
        os.rename(directory, old)
        try:
            os.rename(new, directory)
        except BaseException:
            os.rename(old, directory)
            raise
