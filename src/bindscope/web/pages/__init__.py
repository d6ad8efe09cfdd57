"""Every page that has something of its own to read or to ask. A new page is a module here and one line below."""

from __future__ import annotations

from importlib import import_module

from bindscope.web.page import Page

NAMES = (
    "runs",
    "weights",
    "program",
    "logits",
    "trajectory",
    "development",
    "checkpoint",
    "claims",
    "patch",
    "attention",
    "subspace",
    "arithmetic",
    "symbols",
)
PAGES: tuple[Page, ...] = tuple(import_module(f"bindscope.web.pages.{name}").PAGE for name in NAMES)
