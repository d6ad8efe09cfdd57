/** Where the parts of a heatmap go. */
import { thinLabels } from './axis';
import { showToken } from './format';

export interface HeatmapShape {
  width: number; // of the place it is drawn in
  rows: readonly string[];
  columns: readonly string[];
  rowTitle?: string;
  columnTitle?: string;
  rowMarks?: ReadonlySet<number>;
  columnMarks?: ReadonlySet<number>;
  height?: number; // of the cells together; with square, the most it may be
  least?: number; // width of a cell; the drawing is wider than its place where it must, up to four times
  plain?: boolean;
  square?: boolean;
}
export interface HeatmapLayout {
  left: number; // the cells begin here
  top: number;
  cellWidth: number;
  cellHeight: number;
  width: number; // of the whole drawing
  room: number; // of what is in view of it
  height: number;
  shownRows: number[]; // whose labels are written
  shownColumns: number[];
  rotated: boolean; // column labels run upwards where they do not fit
  rowCharacters: number; // how many characters of a label there is room for
  columnCharacters: number;
  rowSize: number; // of the letters of labels, in pixels
  columnSize: number;
}

const CHARACTER = 6.7; // width of a monospaced character at 11 pixels
const LINE = 13; // height of a label at 11 pixels
const LEAST_LINE = 9; // and of the smallest letters
const LETTERS = 11;
const WIDEST_CELL = 96; // unless its label needs more
const HIGHEST = 640; // of all cells together, unless asked for
const MOST_WIDER = 4; // times the room, where cells have a least width
const LONGEST_COLUMN_LABEL = 16;

export function layOutHeatmap(shape: HeatmapShape): HeatmapLayout {
  const { width, rows, columns, plain = false } = shape;
  const rowCharacters = Math.max(1, Math.min(longest(rows), Math.floor((width * 0.34) / CHARACTER)));
  const left = plain ? 0 : Math.ceil(rowCharacters * CHARACTER) + 14 + (shape.rowTitle ? 18 : 0);
  const right = plain ? 0 : 8;
  const cellWidth = widthOfCell(shape, width - left - right);
  const cellHeight = heightOfCells(shape, cellWidth) / Math.max(1, rows.length);
  const top = plain ? 0 : 26; // the legend
  const label = labelColumns(columns, cellWidth);
  const below = plain ? 0 : 8 + (label.rotated ? Math.ceil(label.characters * CHARACTER) : LINE) + (shape.columnTitle ? 20 : 4);
  return {
    left,
    top,
    cellWidth,
    cellHeight,
    width: plain ? cellWidth * columns.length : Math.max(width, left + cellWidth * columns.length + right),
    room: width,
    height: top + cellHeight * rows.length + below,
    shownRows: plain ? [] : thinLabels(rows.length, cellHeight, lineFor(cellHeight), shape.rowMarks),
    shownColumns: plain ? [] : thinLabels(columns.length, cellWidth, label.needed, shape.columnMarks),
    rotated: label.rotated,
    rowCharacters,
    columnCharacters: label.characters,
    rowSize: letterSize(cellHeight),
    columnSize: label.rotated || longest(columns) === 1 ? letterSize(cellWidth) : LETTERS,
  };
}

/** The cell at a place within the cells, or null outside them. */
export function cellAt(layout: HeatmapLayout, x: number, y: number, rows: number, columns: number): { row: number; column: number } | null {
  const row = Math.floor(y / layout.cellHeight);
  const column = Math.floor(x / layout.cellWidth);
  return row >= 0 && row < rows && column >= 0 && column < columns ? { row, column } : null;
}

/** Whether a label can stand below its column without touching the next. */
export function fitsInCell(layout: HeatmapLayout, label: string): boolean {
  return showToken(label).length * CHARACTER + 5 <= layout.cellWidth;
}

function widthOfCell({ rows, columns, square, height, least = 0 }: HeatmapShape, room: number): number {
  const fitting = room / Math.max(1, columns.length);
  const widest = square ? (height ?? HIGHEST) / Math.max(1, rows.length) : Math.max(WIDEST_CELL, longest(columns) * CHARACTER + 6);
  if (fitting < least && least * columns.length <= MOST_WIDER * room) return least;
  return Math.max(0.1, Math.min(fitting, widest));
}

function heightOfCells(shape: HeatmapShape, cellWidth: number): number {
  const count = Math.max(1, shape.rows.length);
  if (shape.square) return cellWidth * count;
  if (shape.height !== undefined) return shape.height;
  return count <= 24 ? count * 22 : Math.max(528, Math.min(count * 13, HIGHEST));
}

/** Short labels and numbers are left out where they would touch; longer words run upwards instead. */
function labelColumns(columns: readonly string[], cellWidth: number): { rotated: boolean; needed: number; characters: number } {
  const characters = longest(columns);
  const flat = characters * CHARACTER + 5;
  const numeric = columns.every((column) => /^[-−+\d.,ek% ]*$/.test(column));
  if (flat <= cellWidth || numeric || characters === 1) return { rotated: false, needed: characters === 1 ? lineFor(cellWidth) : flat, characters };
  return { rotated: true, needed: lineFor(cellWidth), characters: Math.min(characters, LONGEST_COLUMN_LABEL) };
}

/** Labels shrink to be all written; where even small ones must be left out, those that stay are of full size. */
function lineFor(room: number): number {
  return room >= LEAST_LINE ? LEAST_LINE : LINE;
}

function letterSize(room: number): number {
  return room >= LEAST_LINE ? Math.min(LETTERS, room - 1) : LETTERS;
}

function longest(labels: readonly string[]): number {
  return labels.reduce((most, label) => Math.max(most, showToken(label).length), 0);
}
