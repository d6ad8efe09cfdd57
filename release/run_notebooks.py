"""Run the notebooks and keep what their cells show in build/notebooks, for the site of the documentation.

    python release/run_notebooks.py

Those in the repository are stored without outputs; ``make site`` shows the ones that were run where they are there
and have the same cells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "build" / "notebooks"


def main() -> None:
    RUN.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        print(f"running {path.name} …", file=sys.stderr, flush=True)
        notebook = nbformat.read(path, as_version=4)
        with TemporaryDirectory() as folder:
            NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
        nbformat.write(notebook, RUN / path.name)


if __name__ == "__main__":
    main()
