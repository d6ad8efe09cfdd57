/** Curves of different measures on one axis: each on its own scale from the plateau to the end, and which of two turns first. */
import { labelsOf, number, numbers, type Body, type Value } from '../../api/body';
import { seriesColour } from '../../charts/colour';
import { formatPercent } from '../../charts/format';
import type { Series } from '../../charts/types';
import { seedCurves, stepsOf } from '../../reading/curves';

export interface Curve {
  id: string;
  title: string;
  explains: string;
  unit: string;
  turned: number | null; // half way from the plateau to the end; null: it does not change
  low: number | null;
  high: number | null;
  start: number | null;
  end: number | null;
}

/** Every curve of a body; what turns first stands first, what does not change last. */
export function curvesOf(body: Body): Curve[] {
  const words = (name: string): Value[] => body.coords[name]?.values ?? [];
  const found = labelsOf(body, 'curve').map((label, index) => ({
    id: String(label),
    title: String(words('title')[index] ?? label),
    explains: String(words('explains')[index] ?? ''),
    unit: String(words('unit')[index] ?? '1'),
    turned: number(body, 'turned_at', { curve: label }),
    low: number(body, 'turned_low', { curve: label }),
    high: number(body, 'turned_high', { curve: label }),
    start: number(body, 'start', { curve: label }),
    end: number(body, 'end', { curve: label }),
  }));
  return found.sort((first, second) => (first.turned ?? Infinity) - (second.turned ?? Infinity));
}

/** A curve in its own unit, at the steps where it was measured. */
export function ownSeries(body: Body, curve: Curve, colour?: string): Series {
  const at = { curve: curve.id };
  const [y, low, high] = ['value', 'low', 'high'].map((name) => numbers(body, name, at)) as [(number | null)[], (number | null)[], (number | null)[]];
  const known = y.map((value) => value !== null);
  const keep = <T,>(values: T[]): T[] => values.filter((_, index) => known[index]);
  const interval = low.some((value) => value !== null) ? { low: keep(low), high: keep(high) } : {};
  const x = keep(stepsOf(body));
  return { name: curve.title, x, y: keep(y), ...interval, ...(x.length < 15 ? { marked: true } : {}), ...(colour ? { colour } : {}) };
}

/** The same on a scale of its own: 0 on the plateau, 1 at the end. One that does not change has no such scale. */
export function scaledSeries(body: Body, curve: Curve, index: number): Series | null {
  const { start, end } = curve;
  if (curve.turned === null || start === null || end === null || start === end) return null;
  const scale = (value: number | null): number | null => (value === null ? null : (value - start) / (end - start));
  const own = ownSeries(body, curve, seriesColour(index));
  return { ...own, y: own.y.map(scale), ...(own.low && own.high ? { low: own.low.map(scale), high: own.high.map(scale) } : {}) };
}

/** Which of two turns first, in a sentence; within the intervals of their turns neither does. */
export function whichLeads(first: Curve, second: Curve): string {
  for (const curve of [first, second]) {
    if (curve.turned === null) return `“${curve.title}” does not change after the plateau, so neither leads.`;
  }
  const [early, late] = (first.turned ?? 0) <= (second.turned ?? 0) ? [first, second] : [second, first];
  const [from, to] = [early.turned ?? 0, late.turned ?? 0];
  if (from === to) return `Both turn at step ${from.toLocaleString('en')}.`;
  const overlap = (early.high ?? from) >= (late.low ?? to);
  const words = `“${early.title}” turns at step ${from.toLocaleString('en')}, “${late.title}” at ${to.toLocaleString('en')}`;
  return overlap ? `${words}: their intervals overlap, so neither leads.` : `${words}: the first leads by ${(to - from).toLocaleString('en')} steps.`;
}

/** 'Half way at step 800 (600 to 900): from 8.7 % on the plateau to 100 % at the end.' */
export function tellTurn(curve: Curve): string {
  const [start, end] = [show(curve.start, curve.unit), show(curve.end, curve.unit)];
  return curve.turned === null ? `Does not change after the plateau: ${start} there, ${end} at the end.` : `Half way at step ${turnOf(curve)}: from ${start} on the plateau to ${end} at the end.`;
}

/** The step at which a curve turns, with its interval. */
export function turnOf(curve: Curve): string {
  if (curve.turned === null) return 'does not change';
  const interval = curve.low !== null && curve.high !== null && curve.low < curve.high;
  return curve.turned.toLocaleString('en') + (interval ? ` (${curve.low?.toLocaleString('en')} to ${curve.high?.toLocaleString('en')})` : '');
}

/** What turns first and what last. */
export function tellTurns(body: Body): string {
  const turning = curvesOf(body).filter(({ turned }) => turned !== null);
  const at = (step: number | null | undefined): string => turning.filter(({ turned }) => turned === step).map(({ title }) => `“${title}”`).join(', ');
  const [first, last] = [turning[0]?.turned, turning.at(-1)?.turned];
  if (first == null || last == null) return 'Nothing turns after the plateau.';
  return `First turns ${at(first)}, at step ${first.toLocaleString('en')}${last > first ? `; last ${at(last)}, at step ${last.toLocaleString('en')}` : ''}.`;
}

/** The curve of every other seed, for the few numbers that experiments record of all: a band from the least to the most. */
export function seedSeries(seeds: Body | null, id: string): Series[] {
  if (!seeds?.sizes['seed']) return [];
  const depth = /^depth-(\d+)$/.exec(id);
  const name = depth ? 'accuracy_by_depth' : id.replaceAll('-', '_');
  if (!seeds.variables[`${name}_low`]) return [];
  const band = seedCurves(seeds, name, depth ? Number(depth[1]) : null)[0];
  return band ? [{ ...band, name: `least to most of ${seeds.sizes['seed']} seeds` }] : [];
}

/** A value of a curve in words. */
export function show(value: number | null, unit: string): string {
  if (value === null) return '–';
  return unit === 'fraction' ? formatPercent(value) : Number(value.toPrecision(3)).toLocaleString('en');
}
