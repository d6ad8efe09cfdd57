/** The cells of a heatmap, on a canvas or as SVG. */
import { colourOf, rgb, type Limits, type ScaleName } from './colour';
import type { Reading } from '../panel/readings';
import type { HeatmapLayout } from './heatmapLayout';

export interface Cells {
  rows: number;
  columns: number;
  values: readonly (number | null)[];
  scale: ScaleName;
  limits: Limits;
  mask: boolean; // missing cells stay blank
}
interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Paint all cells; `ink` is the colour of the hatching of missing ones, `density` the device's pixels per pixel. */
export function paintCells(canvas: HTMLCanvasElement, cells: Cells, layout: HeatmapLayout, ink: string, density: number): void {
  const width = Math.max(1, Math.round(layout.cellWidth * cells.columns * density));
  const height = Math.max(1, Math.round(layout.cellHeight * cells.rows * density));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const brush = canvas.getContext('2d');
  if (!brush) return;
  brush.clearRect(0, 0, width, height);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(onePixelEach(cells), 0, 0, width, height);
  const scaled = { ...layout, cellWidth: width / cells.columns, cellHeight: height / cells.rows };
  const missing = cells.mask ? [] : missingOf(cells, scaled);
  if (missing.length) hatch(brush, missing, ink, density);
  if (apart(layout)) {
    for (let row = 1; row < cells.rows; row += 1) brush.clearRect(0, Math.round(row * scaled.cellHeight) - 1, width, 1);
    for (let column = 1; column < cells.columns; column += 1) brush.clearRect(Math.round(column * scaled.cellWidth) - 1, 0, 1, height);
  }
}

/** The same cells as SVG paths, one per colour, standing where the layout puts them. */
export function cellsToSvg(cells: Cells, layout: HeatmapLayout, ink: string): string {
  const table = colourTable(cells.scale, cells.limits);
  const paths = new Map<string, string[]>();
  const gap = apart(layout) ? 1 : 0;
  eachCell(cells, (row, column, value) => {
    if (value === null && cells.mask) return;
    const colour = value === null ? 'url(#missing)' : (table[entryOf(value, cells.limits)] ?? '');
    const { x, y, width, height } = rectangleOf(layout, row, column, (place) => Number(place.toFixed(2)));
    const path = `M${x} ${y}h${short(width - gap)}v${short(height - gap)}h${short(gap - width)}z`;
    const found = paths.get(colour);
    if (found) found.push(path);
    else paths.set(colour, [path]);
  });
  const pattern =
    '<defs><pattern id="missing" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
    `<path d="M0 0v5" stroke="${ink}" stroke-width="1.2" stroke-opacity="0.55"/></pattern></defs>`;
  const drawn = [...paths].map(([colour, path]) => `<path fill="${colour}" d="${path.join('')}"/>`);
  return `${pattern}<g transform="translate(${layout.left},${layout.top})">${drawn.join('\n')}</g>`;
}

/** What stands in each cell that is drawn, where it is drawn. */
export function readingsOf(layout: HeatmapLayout, cells: Cells, describe: (cell: { row: number; column: number }) => string): Reading[] {
  const found: Reading[] = [];
  eachCell(cells, (row, column, value) => {
    if (value === null && cells.mask) return;
    const { x, y, width, height } = rectangleOf(layout, row, column, (place) => place);
    found.push({ x: layout.left + x, y: layout.top + y, width, height, text: describe({ row, column }) });
  });
  return found;
}

const ENTRIES = 512; // even, so that the middle of a scale around zero is among them
const tables = new Map<string, string[]>();

/** The colours of a scale at ENTRIES + 1 values from one limit to the other. */
function colourTable(scale: ScaleName, limits: Limits): string[] {
  const key = `${scale} ${limits.join(' ')}`;
  let table = tables.get(key);
  if (!table) {
    const [low, high] = limits;
    table = Array.from({ length: ENTRIES + 1 }, (_, entry) => colourOf(low + ((high - low) * entry) / ENTRIES, scale, limits) ?? '');
    tables.set(key, table);
  }
  return table;
}

function entryOf(value: number, [low, high]: Limits): number {
  return Math.round(ENTRIES * Math.min(1, Math.max(0, (value - low) / (high - low || 1))));
}

/** An image with a pixel for each cell, transparent where a value is missing. */
function onePixelEach(cells: Cells): HTMLCanvasElement {
  const small = document.createElement('canvas');
  [small.width, small.height] = [cells.columns, cells.rows];
  const brush = small.getContext('2d');
  if (!brush) return small;
  const table = colourTable(cells.scale, cells.limits).map((colour) => rgb(colour).map((part) => Math.round(255 * part)));
  const image = brush.createImageData(cells.columns, cells.rows);
  eachCell(cells, (row, column, value) => {
    const colour = value === null ? undefined : table[entryOf(value, cells.limits)];
    if (colour) image.data.set([colour[0] ?? 0, colour[1] ?? 0, colour[2] ?? 0, 255], 4 * (row * cells.columns + column));
  });
  brush.putImageData(image, 0, 0);
  return small;
}

function missingOf(cells: Cells, layout: HeatmapLayout): Rectangle[] {
  const found: Rectangle[] = [];
  eachCell(cells, (row, column, value) => value === null && found.push(rectangleOf(layout, row, column, Math.round)));
  return found;
}

function eachCell(cells: Cells, visit: (row: number, column: number, value: number | null) => void): void {
  for (let row = 0; row < cells.rows; row += 1) {
    for (let column = 0; column < cells.columns; column += 1) {
      const value = cells.values[row * cells.columns + column] ?? null;
      visit(row, column, value === null || Number.isNaN(value) ? null : value);
    }
  }
}

function rectangleOf(layout: HeatmapLayout, row: number, column: number, round: (place: number) => number): Rectangle {
  const [x, y] = [round(column * layout.cellWidth), round(row * layout.cellHeight)];
  return { x, y, width: round((column + 1) * layout.cellWidth) - x, height: round((row + 1) * layout.cellHeight) - y };
}

/** Whether cells are large enough for a line between them. */
function apart(layout: HeatmapLayout): boolean {
  return layout.cellWidth >= 10 && layout.cellHeight >= 10;
}

function short(length: number): number {
  return Number(length.toFixed(2));
}

function hatch(brush: CanvasRenderingContext2D, rectangles: Rectangle[], ink: string, density: number): void {
  const pattern = brush.createPattern(stripes(ink, density), 'repeat');
  if (!pattern) return;
  brush.fillStyle = pattern;
  for (const { x, y, width, height } of rectangles) brush.fillRect(x, y, width, height);
}

/** A tile of slanted lines that continue in the next tile. */
function stripes(ink: string, density: number): HTMLCanvasElement {
  const tile = document.createElement('canvas');
  const size = Math.max(4, Math.round(6 * density));
  [tile.width, tile.height] = [size, size];
  const brush = tile.getContext('2d');
  if (!brush) return tile;
  brush.strokeStyle = ink;
  brush.globalAlpha = 0.55;
  brush.lineWidth = 1.1 * density;
  brush.beginPath();
  for (const shift of [-size, 0, size]) {
    brush.moveTo(shift - 1, size + 1);
    brush.lineTo(shift + size + 1, -1);
  }
  brush.stroke();
  return tile;
}
