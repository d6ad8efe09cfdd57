"""Every page that has something of its own to read or to ask. A new page is a module here and one line below."""

from __future__ import annotations

from bindscope.web.page import Page
from bindscope.web.pages import checkpoint, claims, program, runs, trajectory

PAGES: tuple[Page, ...] = (runs.PAGE, program.PAGE, trajectory.PAGE, checkpoint.PAGE, claims.PAGE)
