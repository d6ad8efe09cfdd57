"""``bindscope doctor``: what is there to work with, and what to do about the rest."""

from __future__ import annotations

import json as json_format
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from bindscope.cli.failure import OK, REFUSED
from bindscope.cli.options import Flag
from bindscope.cli.table import format_table
from bindscope.runs import locate
from bindscope.runs.locate import RUNS_DIRECTORY

if TYPE_CHECKING:
    from packaging.requirements import Requirement

EXTRAS = {
    "interop": "the same weights in Transformers, TransformerLens, nnsight and pyvene",
    "text": "tokenizers of language models",
    "cluster": "sweeps and measures on a Ray cluster",
    "docs": "the documentation as a site, `make site`",
    "test": "what `make test` needs",
}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
LEAST_FREE = 2 * 2**30  # bytes of disk below which a person is told


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked at, how it is, and what to do where that is not well."""

    name: str
    state: Literal["ok", "note", "missing"]  # missing: something does not work without it
    found: str
    do: str = ""


def doctor(*, json: Annotated[Flag, Parameter(help="One JSON object for each line.")] = False) -> int:
    """Tell what is there (Python, torch, devices, page, browser, extras, disk), and what to do about the rest.

    Nothing is changed and nothing is fetched. It ends with exit code 2 when something
    that Bindscope cannot work without is missing.

    Examples:
        bindscope doctor
        bindscope doctor --json
    """
    findings = list(examine())
    if json:
        print("\n".join(json_format.dumps(asdict(finding)) for finding in findings))
    else:
        print(format_table(["", "", ""], [[one.state, one.name, one.found] for one in findings]).split("\n", 2)[2])
        to_do = [one for one in findings if one.do]
        if to_do:
            print("\nTo do, if you want it:")
            print("\n".join(f"  {one.name}: {one.do}" for one in to_do))
    return REFUSED if any(finding.state == "missing" for finding in findings) else OK


def examine() -> Iterator[Finding]:
    """Every line of the report, from what all need to what few do."""
    yield _python()
    yield from _requirements()
    yield from _torch()
    yield _memory()
    yield _page()
    yield _browser()
    yield from _places()
    yield from _extras()
    yield _chromium()


def _python() -> Finding:
    from bindscope import __version__

    system = f"{platform.system()} {platform.machine()}"
    return Finding("bindscope", "ok", f"{__version__} on Python {platform.python_version()}, {system} ({sys.prefix})")


def _requirements() -> Iterator[Finding]:
    """What the package itself needs, where it is missing or of a version that was not asked for."""
    for needed in _needs(""):
        version = _version(needed)
        if version is None:
            yield Finding(needed.name, "missing", f"{needed.name} is not installed", f"pip install '{needed}'")
        elif not needed.specifier.contains(version, prereleases=True):
            yield Finding(needed.name, "note", f"{version} is not {needed.specifier}", f"pip install '{needed}'")


def _torch() -> Iterator[Finding]:
    import torch

    threads = torch.get_num_threads()
    built = "CUDA " + torch.version.cuda if torch.version.cuda else "CPU build"
    yield Finding("torch", "ok", f"{torch.__version__}, {built}")
    yield Finding(
        "processor",
        "ok",
        f"{_cores()} of {os.cpu_count()} cores may be used, torch takes {threads} thread{'s' * (threads > 1)}, "
        f"{torch.backends.cpu.get_cpu_capability()}; trainings take --threads",
    )
    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
        yield Finding("GPU", "ok", f"{names}: use it with --device cuda")
    elif torch.backends.mps.is_available():
        yield Finding("GPU", "ok", "Apple: use it with --device mps")
    else:
        yield Finding("GPU", "note", "none that torch can use; every command works without one")


def _cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> Finding:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return Finding("memory", "note", "the system does not say how much there is")
    return Finding("memory", "ok", f"{pages * size / 2**30:.0f} GiB")


def _page() -> Finding:
    from bindscope.web.app import static_directory

    if (static_directory() / "index.html").is_file():
        return Finding("page", "ok", "built; bindscope serve opens it")
    return Finding("page", "missing", "the web page was not built", "make demo (in a checkout), or install the wheel")


def _browser() -> Finding:
    from bindscope.cli.serve import has_screen

    if has_screen():
        return Finding("browser", "ok", "the page opens by itself")
    tunnel = "from your own machine: ssh -L 8400:127.0.0.1:PORT HOST, then open http://127.0.0.1:8400"
    return Finding("browser", "note", "no screen here: serve and demo say their address instead", tunnel)


def _places() -> Iterator[Finding]:
    n_shipped = len(locate.shipped_runs())
    yield Finding("shipped runs", "ok" if n_shipped else "note", f"{n_shipped}; bindscope check reads them all")
    place = RUNS_DIRECTORY if RUNS_DIRECTORY.is_dir() else Path()
    free = shutil.disk_usage(place).free
    where = f"{RUNS_DIRECTORY.resolve()}, {free / 2**30:.0f} GiB free"
    if not os.access(place, os.W_OK):
        yield Finding("runs", "note", f"{where}, not writable", "work in another folder, or name one with --out")
    elif free < LEAST_FREE:
        yield Finding("runs", "note", where, "make room: a run takes tens of MB, dense checkpoints gigabytes")
    else:
        yield Finding("runs", "ok", where)


def _extras() -> Iterator[Finding]:
    for extra, purpose in EXTRAS.items():
        absent = [needed.name for needed in _needs(extra) if _version(needed) is None]
        if not absent:
            yield Finding(f"[{extra}]", "ok", f"installed: {purpose}")
        else:
            lacking = f"not installed: {purpose} ({', '.join(absent)})"
            yield Finding(f"[{extra}]", "note", lacking, _install_command(extra))


def _install_command(extra: str) -> str:
    """In a checkout its own folder is installed again, with the extra."""
    root = Path(__file__).parents[3]
    what = f"--editable '{root}[{extra}]'" if (root / "pyproject.toml").is_file() else f"'bindscope[{extra}]'"
    return f"{sys.executable} -m pip install {what}"


def _chromium() -> Finding:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found:
        return Finding("chromium", "ok", f"{found}, for the browser tests")
    return Finding("chromium", "note", "not found: the browser tests of `make test` are skipped")


def _needs(extra: str) -> Iterator[Requirement]:
    """What an extra asks for, or the package itself where it is empty."""
    from packaging.requirements import Requirement

    for text in metadata.requires("bindscope") or []:
        needed = Requirement(text)
        named = re.search(r"extra\s*==\s*['\"](\w+)['\"]", text)
        if (named[1] if named else "") == extra and (not needed.marker or needed.marker.evaluate({"extra": extra})):
            needed.marker = None
            yield needed


def _version(needed: Requirement) -> str | None:
    try:
        return metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return None
