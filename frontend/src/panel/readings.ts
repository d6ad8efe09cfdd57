/** What a drawing says where it is pointed at, without a script: a line below it that the pointer makes visible. */
import { escapeXml } from '../charts/svg';

/** A rectangle of a drawing, in the drawing's own units, and what stands there. */
export interface Reading {
  x: number;
  y: number;
  width: number;
  height: number;
  text: string;
}

const MOST = 3000; // readings of one drawing; more are too small to point at
export const READING_CSS =
  '.bindscope-reading:hover>text{visibility:visible}.bindscope-reading:hover>rect{stroke:currentColor;stroke-opacity:.6}' +
  '.bindscope-readings:hover+.bindscope-hint{visibility:hidden}';

/** The readings of one drawing that stands at `left`, `top` and is magnified by `scale`; `write` sets a text below the figure. */
export function readingsToSvg(readings: readonly Reading[], at: { left: number; top: number; scale: number }, write: (text: string) => string): string {
  if (readings.length > MOST) return '';
  const round = (length: number): number => Number(length.toFixed(1));
  return readings
    .map(({ x, y, width, height, text }) => {
      const box = `x="${round(at.left + x * at.scale)}" y="${round(at.top + y * at.scale)}" width="${round(width * at.scale)}" height="${round(height * at.scale)}"`;
      return `<g class="bindscope-reading"><rect ${box} fill="transparent"/><text visibility="hidden">${write(text)}</text></g>`;
    })
    .join('');
}

/** A line of text at a place, for use inside of `<text>`. */
export function lineAt(x: number, y: number, text: string): string {
  return `<tspan x="${x}" y="${y}">${escapeXml(text)}</tspan>`;
}

/** Upright strips around places along x, each up to the middle between it and the next. */
export function stripsAround(places: readonly number[], box: { left: number; right: number; top: number; bottom: number }, text: (index: number) => string): Reading[] {
  return places.map((place, index) => {
    const before = places[index - 1];
    const after = places[index + 1];
    const from = before === undefined ? box.left : (before + place) / 2;
    const to = after === undefined ? box.right : (place + after) / 2;
    return { x: from, y: box.top, width: Math.max(0, to - from), height: box.bottom - box.top, text: text(index) };
  });
}
