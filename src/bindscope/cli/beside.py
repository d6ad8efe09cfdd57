"""A command as ``web.beside`` starts it: it ends with the process that did, however that ends.

The system closes the pipe that it has in place of a keyboard.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from bindscope.cli.main import main

    threading.Thread(target=_end_with_input, name="end", daemon=True).start()
    main()
