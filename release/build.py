"""Build the source archive and the wheel twice, in two places that differ in all that should not matter, and compare the bytes.

    python release/build.py dist/

Each copy of what git tracks has its own path, time zone, umask and file times. The wheel is built from the source archive as pip builds it,
in an environment of its own with nothing but the registry, by the versions in requirements.lock. Times in both are hatchling's fixed
one, not SOURCE_DATE_EPOCH: who builds a wheel from the source archive gets the same bytes without knowing when it was made.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_MB = 95  # of an archive: PyPI takes 100
PLACES = (("UTC", 0o022, 0.9e9), ("Asia/Kathmandu", 0o077, 1.7e9))  # time zone, umask, times of files


def main() -> int:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    with tempfile.TemporaryDirectory(prefix="bindscope-build-") as name:
        places = [Path(name) / f"place-{number}" for number in range(len(PLACES))]
        for place, (_, _, time) in zip(places, PLACES):  # both before either is built, which takes minutes
            copy_tracked(place / "checkout", time)
        first, second = (build(place, zone, umask) for place, (zone, umask, _) in zip(places, PLACES))
        failed = first.keys() ^ second.keys()
        target.mkdir(exist_ok=True)
        for file in first.keys() & second.keys():
            hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first[file], second[file])]
            failed |= {file} if len(set(hashes)) > 1 else set()
            print(f"{' != '.join(dict.fromkeys(hashes))}  {first[file].stat().st_size / 1e6:.1f} MB  {file}")
            shutil.copyfile(first[file], target / file)
    print(f"differs between two builds: {sorted(failed)}" if failed else f"the same bytes twice, now in {target}")
    large = too_large(target / file for file in first)
    print("".join(f"above the budget of {MOST_MB} MB: {file}\n" for file in large), end="")
    return int(bool(failed or large))


def too_large(archives: Iterable[Path]) -> list[str]:
    """Those above the budget, by name."""
    return sorted(path.name for path in archives if path.is_file() and path.stat().st_size > MOST_MB * 1e6)


def build(place: Path, zone: str, umask: int) -> dict[str, Path]:
    """The two archives, by name."""
    checkout, made = place / "checkout", place / "made"
    made.mkdir(parents=True)
    constraints = place / "constraints.txt"
    constraints.write_text("\n".join(locked_versions()))
    kept = {key: value for key, value in os.environ.items() if key not in ("SOURCE_DATE_EPOCH", "PYTHONPATH")}
    environment = {**kept, "TZ": zone, "PIP_CONSTRAINT": str(constraints), "PIP_BUILD_CONSTRAINT": str(constraints)}

    def run(*words: str | Path) -> None:
        subprocess.run([sys.executable, "-m", *words], cwd=checkout, env=environment, umask=umask, check=True)

    run("hatchling", "build", "-t", "sdist", "-d", made)
    (source,) = made.iterdir()
    run("pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "-w", made, source)
    return {path.name: path for path in made.iterdir()}


def copy_tracked(checkout: Path, time: float) -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)
            os.utime(checkout / name, (time, time))


def locked_versions() -> list[str]:
    return re.findall(
        r"^[\w.-]+==[^\s\\]+(?: ; [^\\\n]+)?", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE
    )


if __name__ == "__main__":
    sys.exit(main())
