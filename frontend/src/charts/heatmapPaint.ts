/** The cells of a heatmap, on a canvas or as SVG. */
import { colourOf, type Limits, type ScaleName } from './colour';
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
  const scaled = { ...layout, cellWidth: layout.cellWidth * density, cellHeight: layout.cellHeight * density };
  const missing: Rectangle[] = [];
  eachCell(cells, scaled, Math.round, (rectangle, colour) => {
    if (colour === null) return void missing.push(rectangle);
    brush.fillStyle = colour;
    brush.fillRect(rectangle.x, rectangle.y, rectangle.width, rectangle.height);
  });
  if (missing.length && !cells.mask) hatch(brush, missing, ink, density);
}

/** The same cells as SVG paths, one per colour, standing where the layout puts them. */
export function cellsToSvg(cells: Cells, layout: HeatmapLayout, ink: string): string {
  const paths = new Map<string, string[]>();
  eachCell(cells, layout, (value) => Number(value.toFixed(2)), (rectangle, colour) => {
    if (colour === null && cells.mask) return;
    const key = colour ?? 'url(#missing)';
    const { x, y, width, height } = rectangle;
    const path = `M${x} ${y}h${width}v${height}h${-width}z`;
    const found = paths.get(key);
    if (found) found.push(path);
    else paths.set(key, [path]);
  });
  const pattern =
    '<defs><pattern id="missing" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
    `<path d="M0 0v5" stroke="${ink}" stroke-width="1.2" stroke-opacity="0.55"/></pattern></defs>`;
  const drawn = [...paths].map(([colour, path]) => `<path fill="${colour}" d="${path.join('')}"/>`);
  return `${pattern}<g transform="translate(${layout.left},${layout.top})">${drawn.join('\n')}</g>`;
}

function eachCell(
  cells: Cells,
  layout: HeatmapLayout,
  round: (value: number) => number,
  draw: (rectangle: Rectangle, colour: string | null) => void,
): void {
  const gap = layout.cellWidth >= 10 && layout.cellHeight >= 10 ? 1 : 0;
  const colours = new Map<number, string | null>(); // many cells share a value
  for (let row = 0; row < cells.rows; row += 1) {
    const y = round(row * layout.cellHeight);
    const height = round(round((row + 1) * layout.cellHeight) - y - gap);
    for (let column = 0; column < cells.columns; column += 1) {
      const x = round(column * layout.cellWidth);
      const width = round(round((column + 1) * layout.cellWidth) - x - gap);
      const value = cells.values[row * cells.columns + column] ?? null;
      let colour = value === null ? null : colours.get(value);
      if (value !== null && colour === undefined) {
        colour = colourOf(value, cells.scale, cells.limits);
        colours.set(value, colour);
      }
      draw({ x, y, width, height }, colour ?? null);
    }
  }
}

function hatch(brush: CanvasRenderingContext2D, rectangles: Rectangle[], ink: string, density: number): void {
  brush.save();
  brush.beginPath();
  for (const { x, y, width, height } of rectangles) brush.rect(x, y, width, height);
  brush.clip();
  brush.strokeStyle = ink;
  brush.globalAlpha = 0.55;
  brush.lineWidth = 1.1 * density;
  const { width, height } = brush.canvas;
  brush.beginPath();
  for (let start = -height; start < width; start += 5 * density) {
    brush.moveTo(start, height);
    brush.lineTo(start + height, 0);
  }
  brush.stroke();
  brush.restore();
}
