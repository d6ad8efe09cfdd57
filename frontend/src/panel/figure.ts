/** Drawings put together to one picture: each where it stands on the page, with its subtitle; title and footer for a paper. */
import { escapeXml } from '../charts/svg';
import { LETTERS, READING_CSS, readingsToSvg, type Reading } from './readings';
import { wrap } from './wrap';

/** One drawing, as the text of an SVG, with its place on the page in pixels. */
export interface Part {
  markup: string;
  width: number;
  height: number;
  units: number; // of the drawing itself, along its width
  left: number;
  top: number;
  subtitle: string;
  readings?: () => Reading[]; // what it says where it is pointed at
}
export interface FigureSettings {
  paper: string; // its colour
  ink: string;
  margin?: number;
  width?: number; // at least so wide
  mm?: number; // as wide as this on paper
  title?: string;
  finding?: string;
  footer?: string;
  letters?: boolean; // a, b, … where there are several parts
  readings?: boolean; // it says what is pointed at
}
export interface Figure {
  svg: string;
  width: number; // in pixels, of which 96 are an inch
  height: number;
  smallest: number; // letters, in points on paper
}
interface Line {
  text: string;
  size: number; // of letters, in pixels: 8 are six points
  bold?: boolean;
}

export const PIXELS_PER_MM = 96 / 25.4;
const POINTS = 0.75; // to a pixel
const [TITLE, TEXT, FOOTER, GAP] = [12, 10.7, 8.2, 10];
const SANS = "Helvetica, Arial, 'Liberation Sans', sans-serif";

export function partOf(markup: string, subtitle: string, left: number, top: number): Part | null {
  const root = /^[^<]*(<svg[^>]*>)/.exec(markup)?.[1];
  if (!root) return null;
  const read = (name: string): number => Number.parseFloat(new RegExp(`\\s${name}="([^"]*)"`).exec(root)?.[1] ?? '') || 300;
  const units = Number(/viewBox="[^"]*?\s[^"]*?\s([\d.]+)\s/.exec(root)?.[1]) || read('width');
  return { markup, subtitle, left, top, width: read('width'), height: read('height'), units };
}

/** The parts of each row, from left to right: what overlaps in height stands in one row. */
export function rowsOf(parts: readonly Part[]): Part[][] {
  const rows: Part[][] = [];
  for (const part of parts.toSorted((one, other) => one.top - other.top || one.left - other.left)) {
    const row = rows.at(-1);
    const middle = part.top + part.height / 2;
    if (row?.some((other) => middle < other.top + other.height || other.top + other.height / 2 > part.top)) row.push(part);
    else rows.push([part]);
  }
  return rows.map((row) => row.toSorted((one, other) => one.left - other.left));
}

export function layOutFigure(parts: readonly Part[], settings: FigureSettings): Figure {
  const { paper, ink, margin = 0, mm, letters = false } = settings;
  const width = Math.max(settings.width ?? 0, ...parts.map((part) => part.left + part.width)) + 2 * margin;
  const lettered = letters && parts.length > 1 && parts.length <= 26;
  const written: string[] = [];
  let y = margin;
  const write = (x: number, line: Line): void => {
    y += 1.3 * line.size;
    written.push(textAt(x, y - 0.3 * line.size, line, ink));
  };
  const paragraph = (text: string | undefined, size: number, bold = false): void => {
    for (const line of wrap(text ?? '', width - 2 * margin, bold ? 1.06 * size : size)) write(margin, { text: line, size, bold });
  };
  paragraph(settings.title, TITLE, true);
  paragraph(settings.finding, TEXT);
  if (settings.title || settings.finding) y += GAP / 2;
  const placed: Placed[] = [];
  let count = 0;
  for (const row of rowsOf(parts)) {
    const heads = row.map((part) => headOf(part, lettered ? String.fromCharCode(97 + count++) : ''));
    const above = Math.max(...heads.map((head) => head.height));
    row.forEach((part, index) => {
      const x = margin + part.left;
      placed.push({ part, left: x, top: y + above });
      written.push(...(heads[index]?.write(x, y, ink) ?? []), part.markup.replace('<svg', `<svg x="${round(x)}" y="${round(y + above)}"`));
    });
    y += above + Math.max(...row.map((part) => part.height)) + GAP;
  }
  paragraph(settings.footer, FOOTER);
  if (settings.readings) written.push(...[readout(placed, { width, paper, ink })].filter(Boolean));
  return finish(written, { width, height: y + margin, paper, ink, mm, smallest: Math.min(...parts.map(smallestIn), settings.footer ? FOOTER : TEXT) });
}

interface Placed {
  part: Part;
  left: number;
  top: number;
}

/** What the parts say where they are pointed at. */
function readout(placed: readonly Placed[], figure: { width: number; paper: string; ink: string }): string {
  const over = placed.map(({ part, left, top }) => readingsToSvg(part.readings?.() ?? [], { left, top, scale: part.width / part.units }, figure)).join('');
  return over && `<style>${READING_CSS}</style><g font-family="${SANS}" font-size="${LETTERS}px" fill="${figure.ink}" color="${figure.ink}">${over}</g>`;
}

/** A part's letter and subtitle, above it. */
function headOf(part: Part, letter: string): { height: number; write: (x: number, y: number, ink: string) => string[] } {
  const indent = letter ? 14 : 0;
  const lines = wrap(part.subtitle, Math.max(60, part.width - indent), TEXT);
  const line = 1.3 * TEXT;
  return {
    height: letter || lines.length ? line * Math.max(1, lines.length) + 3 : 0,
    write: (x, y, ink) => [
      ...(letter ? [textAt(x, y + TEXT, { text: letter, size: TEXT, bold: true }, ink)] : []),
      ...lines.map((text, index) => textAt(x + indent, y + TEXT + index * line, { text, size: TEXT }, ink)),
    ],
  };
}

/** The smallest letters of a part, in pixels as it is drawn. */
function smallestIn({ markup, width, units }: Part): number {
  const sizes = [...markup.matchAll(/<text[^>]*?font-size[=:]\s*"?([\d.]+)/g)].map(([, size]) => Number(size));
  return (Math.min(...sizes, 16) * width) / units;
}

function finish(written: string[], { width, height, paper, ink, mm, smallest }: { width: number; height: number; paper: string; ink: string; mm?: number; smallest: number }): Figure {
  const scale = mm === undefined ? 1 : (mm * PIXELS_PER_MM) / width;
  const size = mm === undefined ? `width="${round(width)}" height="${round(height)}"` : `width="${mm}mm" height="${round((height * scale) / PIXELS_PER_MM)}mm"`;
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${round(width)} ${round(height)}" color="${ink}">`,
    `<rect width="100%" height="100%" fill="${paper}"/>`,
    ...written,
    '</svg>',
  ].join('\n');
  return { svg: mm === undefined ? svg : svg.replaceAll('system-ui, sans-serif', SANS), width: width * scale, height: height * scale, smallest: smallest * scale * POINTS };
}

function textAt(x: number, y: number, { text, size, bold }: Line, ink: string): string {
  return `<text x="${round(x)}" y="${round(y)}" font-family="${SANS}" font-size="${size}px"${bold ? ' font-weight="700"' : ''} fill="${ink}">${escapeXml(text)}</text>`;
}

function round(length: number): number {
  return Number(length.toFixed(2));
}
