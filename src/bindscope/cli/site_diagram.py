"""docs/figures/sites.svg: where every site stands in a block, in layers one after the other and in parallel ones.

A pill is a site, dashed where only some models have it; words on an arrow say what is computed there. Written as text,
so that the file is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

WIDTH, HEIGHT = 1200, 830
STREAM = 70  # where the residual stream runs, from the left edge of a panel
INK, MUTED, PILL, EDGE = "#1f2937", "#6b7280", "#e0e7ff", "#4f46e5"
SOME = frozenset({"pos_embed", "rot_q", "rot_k", "pre_linear"})  # sites that only some models have


def draw_sites() -> str:
    """Both kinds of layers side by side, as SVG."""
    left, right = Panel(20), Panel(480)
    draw_sequential(left)
    draw_parallel(right)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">'
        "<title>Every site at its position in a layer</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{MUTED}"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    )
    return "\n".join([head, *left.parts, *right.parts, "</svg>"]) + "\n"


@dataclass
class Panel:
    """One drawing; ``x`` is its left edge, and positions count from there."""

    x: int
    parts: list[str] = field(default_factory=list)

    def text(self, x: int, y: int, words: str, colour: str = MUTED, size: int = 11, anchor: str = "start") -> None:
        style = f'fill="{colour}" font-size="{size}" text-anchor="{anchor}"'
        self.parts.append(f'<text x="{self.x + x}" y="{y + 4}" {style}>{words}</text>')

    def site(self, x: int, y: int, name: str) -> None:
        """A pill around (x, y) with a site's name."""
        width, dash = 14 + 8 * len(name), ' stroke-dasharray="4 3"' if name in SOME else ""
        shape = f'x="{self.x + x - width // 2}" y="{y - 12}" width="{width}" height="24" rx="12"'
        self.parts.append(f'<rect {shape} fill="{PILL}" stroke="{EDGE}"{dash}/>')
        self.text(x, y, name, INK, 13, "middle")

    def step(self, x: int, y: int, words: str) -> None:
        """A box around (x, y): something that is computed and is no site."""
        width = 16 + 7 * len(words)
        shape = f'x="{self.x + x - width // 2}" y="{y - 12}" width="{width}" height="24" rx="3"'
        self.parts.append(f'<rect {shape} fill="#ffffff" stroke="{MUTED}"/>')
        self.text(x, y, words, INK, 12, "middle")

    def plus(self, y: int) -> None:
        """Where something is added to the residual stream."""
        self.parts.append(f'<circle cx="{self.x + STREAM}" cy="{y}" r="9" fill="#ffffff" stroke="{INK}"/>')
        self.text(STREAM, y, "+", INK, 15, "middle")

    def arrow(self, *points: tuple[int, int]) -> None:
        line = " L".join(f"{self.x + x} {y}" for x, y in points)
        self.parts.append(f'<path d="M{line}" fill="none" stroke="{MUTED}" marker-end="url(#tip)"/>')

    def stream(self, heights: Iterable[int]) -> None:
        """The residual stream downwards, with a tip before each of these heights."""
        ys = list(heights)
        for above, below in pairwise(ys):
            self.arrow((STREAM, above + 12), (STREAM, below - 12))

    def frame(self, top: int, bottom: int, width: int, words: str) -> None:
        shape = f'x="{self.x}" y="{top}" width="{width}" height="{bottom - top}" rx="8"'
        self.parts.append(f'<rect {shape} fill="none" stroke="#d1d5db" stroke-dasharray="2 4"/>')
        self.text(width - 8, top + 14, words, anchor="end")


def draw_sequential(panel: Panel) -> None:
    """Attention, then an MLP that reads what attention has written."""
    panel.text(0, 16, "one after the other", INK, 15)
    panel.frame(110, 755, 440, "layer L")
    draw_entrance(panel)
    panel.stream([40, 90, 140, 492, 532, 694, 735, 790])
    draw_attention(panel, 155, 140, 492)
    draw_mlp(panel, 155, 532, 562, 694)
    panel.site(STREAM, 140, "resid_pre")
    panel.plus(492)
    panel.site(STREAM, 532, "resid_mid")
    panel.plus(694)
    panel.site(STREAM, 735, "resid_post")
    draw_exit(panel)


def draw_parallel(panel: Panel) -> None:
    """Attention and an MLP that both read what enters the layer, as in GPT-NeoX."""
    panel.text(0, 16, "in parallel: no resid_mid", INK, 15)
    panel.frame(110, 755, 700, "layer L")
    draw_entrance(panel)
    panel.stream([40, 90, 140, 492, 600, 735, 790])
    draw_attention(panel, 155, 140, 492)
    draw_mlp(panel, 445, 131, 170, 600)
    panel.site(STREAM, 140, "resid_pre")
    panel.plus(492)
    panel.plus(600)
    panel.site(STREAM, 735, "resid_post")
    draw_exit(panel)


def draw_entrance(panel: Panel) -> None:
    panel.site(STREAM, 40, "embed")
    panel.site(STREAM + 110, 90, "pos_embed")
    panel.arrow((STREAM + 67, 90), (STREAM + 10, 90))
    panel.plus(90)
    panel.text(STREAM + 162, 90, "learned positions")
    panel.text(STREAM + 36, 40, "of the tokens")


def draw_exit(panel: Panel) -> None:
    """What leaves the last layer."""
    panel.step(STREAM, 795, "LayerNorm")
    panel.arrow((STREAM + 40, 795), (STREAM + 84, 795))
    panel.site(STREAM + 112, 795, "final")
    panel.arrow((STREAM + 140, 795), (STREAM + 186, 795))
    panel.step(STREAM + 235, 795, "unembedding")
    panel.arrow((STREAM + 284, 795), (STREAM + 312, 795))
    panel.text(STREAM + 316, 795, "logits", INK, 13)
    panel.text(STREAM + 12, 770, "after the last layer")


def draw_attention(panel: Panel, x: int, entering: int, adding: int) -> None:
    """From the residual stream at one height through the heads and back to it at another."""
    top = entering + 30
    panel.arrow((STREAM, entering), (x + 45, entering), (x + 45, top - 12))
    panel.step(x + 45, top, "LayerNorm")
    q, k, v, middle = x, x + 90, x + 235, x + 45
    for column, name in ((q, "q"), (k, "k"), (v, "v")):
        panel.arrow((middle, top + 12), (column, top + 36))
        panel.site(column, top + 48, name)
    for column, name in ((q, "rot_q"), (k, "rot_k")):
        panel.arrow((column, top + 60), (column, top + 86))
        panel.site(column, top + 98, name)
        panel.arrow((column, top + 110), (middle, top + 136))
    panel.text(k + 38, top + 98, "rotation (RoPE)")
    rows = [("scores", "q·k / √d_head, mask"), ("pattern", "softmax over keys"), ("z", "pattern × v"),
            ("result", "output map of each head"), ("attn_out", "sum of heads + bias")]  # fmt: skip
    for index, (name, words) in enumerate(rows):
        y = top + 148 + 43 * index
        if index:
            panel.arrow((middle, y - 31), (middle, y - 12))
        if name == "z":
            panel.arrow((v, top + 60), (v, y), (middle + 15, y))
        panel.site(middle, y, name)
        panel.text(x + 92, y - 10 if name == "z" else y, words)
    panel.arrow((x + 5, adding), (STREAM + 10, adding))


def draw_mlp(panel: Panel, x: int, entering: int, top: int, adding: int) -> None:
    """From the residual stream at one height through the neurons and back to it at another."""
    middle = x + 45
    panel.arrow((STREAM, entering), (middle, entering), (middle, top - 12))
    panel.step(middle, top, "LayerNorm")
    for column, name in ((x, "pre"), (x + 110, "pre_linear")):
        panel.arrow((middle, top + 12), (column, top + 32))
        panel.site(column, top + 44, name)
        panel.arrow((column, top + 56), (middle, top + 76))
    panel.site(middle, top + 88, "post")
    panel.text(x + 78, top + 90, "act(pre), × pre_linear if gated")
    panel.arrow((middle, top + 100), (middle, adding - 12))
    panel.site(middle, adding, "mlp_out")
    panel.text(x + 92, adding, "output map + bias")
    panel.arrow((x + 9, adding), (STREAM + 10, adding))
