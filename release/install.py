"""Install a wheel or source archive into an empty environment of the Python that runs this file, and try every command.

    python3.13 release/install.py dist/bindscope-0.1.0-py3-none-any.whl [--bill dist/bindscope.cdx.json] [--keep FOLDER]

Nothing comes along but pip and what the registry has. It exits with 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("archive", type=Path)
    asked.add_argument("--bill", type=Path, help="write the bill of materials of the environment here")
    asked.add_argument("--keep", type=Path, help="the environment's folder; one that is there is installed into")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="bindscope-empty-") as name:
        folder = given.keep or Path(name)
        if not (folder / "bin").exists():
            venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        return try_archive(python, given.archive.resolve(), given.bill and given.bill.resolve())


def try_archive(python: Path, archive: Path, bill: Path | None) -> int:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["OMP_NUM_THREADS"] = "1"
    billing: list[list[str | Path]] = [[python, "-I", HERE / "bill.py", archive, bill]] if bill else []
    commands: list[list[str | Path]] = [
        [python, "-m", "pip", "install", "--quiet", archive],
        [python, "-m", "pip", "check"],
        [python.parent / "bindscope", "--version"],
        *billing,
        [python, "-I", HERE / "smoke.py"],
    ]
    for command in commands:
        code = subprocess.run(command, env=environment, cwd=python.parent).returncode
        if code:
            print(f"{sys.version.split()[0]}: {' '.join(map(str, command))} ended with {code}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
