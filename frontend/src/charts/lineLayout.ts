/** The parts of a line chart as places and paths. */
import { area, line } from 'd3-shape';
import type { Axis } from './axis';
import type { Limits } from './colour';
import { shorten } from './format';
import type { Band, Series } from './types';

/** Every x at which some series has a value, in order. */
export function placesOf(series: readonly Series[]): number[] {
  const found = new Set<number>();
  for (const { x, y } of series) x.forEach((place, index) => (y[index] ?? null) !== null && found.add(place));
  return [...found].sort((one, other) => one - other);
}

/** The limits of the upright axis: given, or those of the data with a little room. */
export function limitsOf(series: readonly Series[], references: readonly { y: number }[], percent: boolean, given?: Limits): Limits {
  if (given) return given;
  const values = series
    .flatMap(({ y, low = [], high = [] }) => [...y, ...low, ...high])
    .concat(references.map((reference) => reference.y))
    .filter((value): value is number => value !== null && Number.isFinite(value));
  const [least, most] = values.reduce(([low, high]: Limits, value): Limits => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  if (percent && (!values.length || (least >= 0 && most <= 1))) return [0, 1];
  if (!values.length) return [0, 1];
  const room = (most - least || Math.abs(most) || 1) * 0.05;
  return [least >= 0 && least < most * 0.4 ? 0 : least - room, most + room];
}

/** Every value that a logarithmic axis has to hold: those given, or those of the data with their intervals. */
export function heightsOf(series: readonly Series[], given?: Limits): number[] {
  if (given) return [...given];
  return series.flatMap(({ y, low = [], high = [] }) => [...y, ...low, ...high]).flatMap((value) => (value === null || !Number.isFinite(value) ? [] : [Math.max(0, value)]));
}

/** The curve; where a value is missing it has a gap, and a value alone between gaps is a dot. */
export function curveOf({ x, y }: Series, across: Axis, up: Axis): string {
  const draw = line<number>((index) => across.place(x[index] ?? 0), (index) => up.place(y[index] ?? 0));
  return draw.defined((index) => (y[index] ?? null) !== null)(x.map((_, index) => index)) ?? '';
}

/** The interval around the curve. */
export function ribbonOf({ x, low, high }: Series, across: Axis, up: Axis): string {
  if (!low || !high) return '';
  const draw = area<number>(
    (index) => across.place(x[index] ?? 0),
    (index) => up.place(low[index] ?? 0),
    (index) => up.place(high[index] ?? 0),
  );
  return draw.defined((index) => (low[index] ?? null) !== null && (high[index] ?? null) !== null)(x.map((_, index) => index)) ?? '';
}

/** Where to set marks along a curve: the first value, then each that is `gap` pixels from the last mark. */
export function marksOf({ x, y }: Series, across: Axis, up: Axis, gap: number): { x: number; y: number }[] {
  const marks: { x: number; y: number }[] = [];
  x.forEach((place, index) => {
    const value = y[index] ?? null;
    if (value === null) return;
    const mark = { x: across.place(place), y: up.place(value) };
    if (!marks.length || mark.x - (marks[marks.length - 1]?.x ?? 0) >= gap) marks.push(mark);
  });
  return marks;
}

/** The last value of a series, where its name is written. */
export function endOf({ x, y }: Series): { x: number; y: number } | null {
  for (let index = x.length - 1; index >= 0; index -= 1) {
    const value = y[index] ?? null;
    if (value !== null) return { x: x[index] ?? 0, y: value };
  }
  return null;
}

/** The band that x lies in: bands hold their start, not their end, except the last. */
export function bandAt(bands: readonly Band[], x: number): Band | null {
  return bands.find((band) => x >= band.from && x < band.to) ?? bands.find((band) => x === band.to) ?? null;
}

const LETTER = 6.2; // pixels of a letter of a band's name

/** The names of bands with the middle of each, over its band or as near as its neighbours allow; a name without room is shortened or left out. */
export function bandNames(bands: readonly Band[], place: (x: number) => number, [first, last]: Limits): { name: string; middle: number }[] {
  const names: { name: string; middle: number }[] = [];
  let before = first - 2; // left of it are the labels of the other axis
  const named = bands.filter(({ weight }) => weight !== 'faint');
  named.forEach(({ name, from, to }, index) => {
    const next = named[index + 1];
    const after = Math.max(place(to), next ? place(next.from) - 4 : last + 20);
    const wanted = name.length * LETTER;
    const fitting = after - before >= wanted ? name : shorten(name, Math.floor((after - before) / LETTER));
    if (fitting.length < 4) return;
    const half = (fitting.length * LETTER) / 2;
    const middle = Math.max(before + half, Math.min(after - half, (place(from) + place(to)) / 2));
    names.push({ name: fitting, middle });
    before = middle + half + 8;
  });
  return names;
}

const PHASES = ['random', 'heuristic', 'systematic'];

/** The colour of a band: that of its phase, or those of the phases in turn; what is no phase has one colour by its weight. */
export function bandColour({ name, weight }: Band, index: number): string {
  if (weight) return weight === 'strong' ? 'var(--accent, Highlight)' : 'var(--ink-soft, GrayText)';
  const phase = PHASES.find((known) => name.toLowerCase().includes(known)) ?? PHASES[index % PHASES.length];
  return `var(--${phase}, GrayText)`;
}
