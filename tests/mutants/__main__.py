"""``make mutants``: small wrong changes to the core, each of which some test should notice.

    python -m mutants --packages interventions tasks runs --n 200 --seed 0

The tests of these packages run once with coverage, which tells which tests run each line. A sample of all possible changes
(``mutate.py``) is then tried, one at a time, in a copy of the sources: the tests that run the changed line, and, if none of
them fails, the whole files that these stand in. A mutant that no test notices *survives*, and is printed with its line.
A line that no test runs is said to be so. Nothing in the checkout changes.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import NoReturn

os.environ["OMP_NUM_THREADS"] = "1"

import hypothesis  # noqa: F401  here and below: what takes long to import, once for all mutants
import pytest
import scipy.stats  # noqa: F401
import torch._dynamo  # noqa: F401
import xarray  # noqa: F401

from mutants.mutate import Mutant, find_mutants

ROOT = Path(__file__).parents[2]
PYTEST = [
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--no-header",
    "--tb=no",
]
MOST_TESTS = 60  # of those that run a line, the first ones of each file; whole files come after
LONGEST = 120  # seconds: a change that makes a loop endless is noticed too


@dataclass
class Copy:
    """The sources with a place for a change, and which tests run which line of them."""

    folder: Path
    tests: dict[Path, dict[int, list[str]]] = field(default_factory=dict)  # module → line → tests
    clock: Iterator[int] = field(default_factory=partial(count, 1))

    @property
    def source(self) -> Path:
        return self.folder / "src" / "bindscope"

    def run(self, *arguments: str, timeout: float | None = None) -> int:
        """Exit code of pytest on the copy, in a fork of this process, which has imported what is slow; 1 where it does not end."""
        child = os.fork()
        if child == 0:
            self._test(arguments)
        ends = time.monotonic() + (timeout or 1e9)
        while time.monotonic() < ends:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 1

    def _test(self, arguments: tuple[str, ...]) -> NoReturn:
        code = 3
        try:
            os.setsid()
            os.chdir(self.folder)
            sys.path.insert(0, str(self.folder / "src"))
            os.environ |= {"PYTHONPATH": str(self.folder / "src"), "COVERAGE_FILE": str(self.folder / "coverage")}
            sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            code = int(pytest.main([*PYTEST, *arguments]))
        finally:
            os._exit(code)


def main() -> int:
    options = read_options()
    began, outcomes = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="bindscope-mutants-") as name:
        copy = make_copy(Path(name), options.packages)
        learn_tests(copy, options.packages)
        print(f"which tests run which line is known after {time.monotonic() - began:.0f} s", flush=True)
        drawn = sample(copy, options.packages, options.n, random.Random(options.seed))
        for number, (module, mutant) in enumerate(drawn[options.after :], options.after + 1):
            outcome = try_mutant(copy, module, mutant)
            outcomes[outcome] += 1
            if outcome != "killed":
                line = (copy.source / module).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
                print(f"{outcome}: {module}:{mutant.line}: {mutant.change}    {line}", flush=True)
            if number % 20 == 0:
                print(f"  {number} of {len(drawn)} tried, {time.monotonic() - began:.0f} s", flush=True)
    counts = ", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common())
    print(f"{sum(outcomes.values())} mutants of {', '.join(options.packages)}, seed {options.seed}: {counts}")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--packages", nargs="+", default=["interventions", "tasks", "runs"], help="folders of src/bindscope"
    )
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--after", type=int, default=0, help="leave out so many of the sample, which were tried before")
    return parser.parse_args()


def make_copy(folder: Path, packages: list[str]) -> Copy:
    """Sources and tests side by side as in the checkout; what is large or never changes is a link."""
    skipped = shutil.ignore_patterns("__pycache__", "shipped")
    shutil.copytree(ROOT / "src", folder / "src", ignore=skipped)
    (folder / "src" / "bindscope" / "shipped").symlink_to(ROOT / "src" / "bindscope" / "shipped")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("docs", "examples", "notebooks", "frontend", "benchmarks", "README.md", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    return Copy(folder)


def learn_tests(copy: Copy, packages: list[str]) -> None:
    """Run the packages' tests once, with coverage by test."""
    from coverage import CoverageData

    arguments = [f"--cov={copy.source / package}" for package in packages]
    code = copy.run(*arguments, "--cov-context=test", "--cov-report=", *(f"tests/{package}" for package in packages))
    if code != 0:
        sys.exit("The tests of these packages fail without any change.")
    data = CoverageData(basename=str(copy.folder / "coverage"))
    data.read()
    for file in data.measured_files():
        by_line = {
            line: sorted({context.split("|")[0] for context in contexts if context})
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        copy.tests[Path(file).relative_to(copy.source)] = by_line


def sample(copy: Copy, packages: list[str], n: int, rng: random.Random) -> list[tuple[Path, Mutant]]:
    """Every possible change is as likely as every other."""
    modules = sorted(path for package in packages for path in (copy.source / package).rglob("*.py"))
    every = [
        (path.relative_to(copy.source), mutant)
        for path in modules
        for mutant in find_mutants(path.read_text(encoding="utf-8"))
    ]
    print(f"{len(every):,} changes are possible", flush=True)
    return rng.sample(every, min(n, len(every)))


def try_mutant(copy: Copy, module: Path, mutant: Mutant) -> str:
    """``killed``, ``survived``, or ``not run`` by any test."""
    tests = copy.tests.get(module, {}).get(mutant.line, [])
    if mutant.line not in copy.tests.get(module, {}):
        return "not run"
    files = sorted({test.split("::")[0] for test in tests}) or [f"tests/{module.parts[0]}"]
    path = copy.source / module
    before, written = path.read_text(encoding="utf-8"), path.stat().st_mtime_ns
    path.write_text(mutant.text, encoding="utf-8")
    os.utime(path, (next(copy.clock), next(copy.clock)))  # no compiled file of another mutant is as old as this one
    try:
        few = spread(tests)
        if few and copy.run(*few, timeout=LONGEST):
            return "killed"
        return "killed" if copy.run(*files, timeout=2 * LONGEST) else "survived"
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=(written, written))


def spread(tests: list[str]) -> list[str]:
    """At most ``MOST_TESTS``, from every file in turn."""
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.split("::")[0], []).append(test)
    most = max(1, MOST_TESTS // max(1, len(by_file)))
    return [test for each in by_file.values() for test in each[:most]]


if __name__ == "__main__":
    sys.exit(main())
