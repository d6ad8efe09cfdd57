"""The API as a file, from which the page's types are made.

python -m bindscope.web.describe frontend/openapi.json
"""

from __future__ import annotations

import sys
from pathlib import Path

import orjson


def describe_api() -> bytes:
    """The OpenAPI description of a server, the same whatever runs it shows."""
    from bindscope.web.app import create_app
    from bindscope.web.lab import Lab

    schema = create_app(Lab([], Path("runs"))).openapi()
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(describe_api())
