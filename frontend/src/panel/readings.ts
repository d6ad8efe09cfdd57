/** What a drawing says where it is pointed at, without a script: words beside the place that the pointer makes visible. */
import { escapeXml } from '../charts/svg';
import { wrap } from './wrap';

/** A rectangle of a drawing, in the drawing's own units, and what stands there. */
export interface Reading {
  x: number;
  y: number;
  width: number;
  height: number;
  text: string;
}

const MOST = 3000; // readings of one drawing; more are too small to point at
export const LETTERS = 13; // of the words, in pixels
const [LINE, PAD, WIDE] = [17, 5, 0.56]; // a line, around the words, and a letter's width to its height
const COLUMN = 72; // letters in a line
export const READING_CSS = '.bindscope-reading:hover>g{visibility:visible}.bindscope-reading:hover>rect{stroke:currentColor;stroke-opacity:.6}';

/** The readings of one drawing that stands at `left`, `top` of a figure and is magnified by `scale`. */
export function readingsToSvg(readings: readonly Reading[], at: { left: number; top: number; scale: number }, figure: { width: number; paper: string; ink: string }): string {
  if (readings.length > MOST) return '';
  return readings
    .map(({ x, y, width, height, text }) => {
      const box = { x: at.left + x * at.scale, y: at.top + y * at.scale, width: width * at.scale, height: height * at.scale };
      return `<g class="bindscope-reading">${rectangle(box, 'fill="transparent"')}<g visibility="hidden" pointer-events="none">${card(box, text, figure)}</g></g>`;
    })
    .join('');
}

/** What is said of a rectangle: above it, or below where there is no room, and within the figure. */
function card(around: Omit<Reading, 'text'>, text: string, { width, paper, ink }: { width: number; paper: string; ink: string }): string {
  const lines = wrap(text, Math.min(width - 2 * PAD, COLUMN * WIDE * LETTERS), LETTERS);
  const size = { width: WIDE * LETTERS * Math.max(...lines.map((line) => line.length)) + 2 * PAD, height: LINE * lines.length + PAD };
  const x = Math.max(0, Math.min(around.x, width - size.width));
  const y = around.y - size.height - 3 >= 0 ? around.y - size.height - 3 : around.y + Math.min(around.height, LINE) + 3;
  const written = lines.map((line, index) => `<tspan x="${short(x + PAD)}" y="${short(y + LINE * (index + 1) - 2)}">${escapeXml(line)}</tspan>`).join('');
  return `${rectangle({ x, y, ...size }, `rx="3" fill="${paper}" fill-opacity="0.94" stroke="${ink}" stroke-opacity="0.4"`)}<text>${written}</text>`;
}

function rectangle({ x, y, width, height }: Omit<Reading, 'text'>, look: string): string {
  return `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" ${look}/>`;
}

function short(length: number): number {
  return Number(length.toFixed(1));
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
