/** Points of the residual stream along two axes, at one step, as the scatter takes them. */
import { labelsOf, numbers, type Body, type Value } from '../../api/body';
import type { Limits } from '../../charts/colour';
import { formatPercent } from '../../charts/format';
import type { Point } from '../../charts/types';
import { nearest } from '../../state/view.svelte';

export type Colour = 'value' | 'name' | 'depth';
export type Kind = 'frozen' | 'refitted' | 'random';

/** What is looked at: which axes, at which of the steps that were measured. */
export interface Look {
  kind: Kind;
  step: number;
  across: number; // an axis, counted from 1
  up: number;
}

/** The measured step nearest to the one on the slider. */
export function measuredStep(body: Body, step: number): number {
  return nearest(labelsOf(body, 'step').map(Number), step);
}

/** Every point of the body, named by what it stands for. */
export function pointsOf(body: Body, look: Look, colour: Colour): Point[] {
  const at = { kind: look.kind, step: look.step };
  const x = numbers(body, 'coordinate', { ...at, axis: look.across });
  const y = numbers(body, 'coordinate', { ...at, axis: look.up });
  return place(body, x, y, colour, (index) => `program ${Number(column(body, 'pair')[index]) + 1}, position ${column(body, 'position')[index]}`);
}

/** The points of the reader's own program, from the live question `project`; its depth is that of all of them. */
export function ownPoints(body: Body, look: Look, colour: Colour): Point[] {
  const x = numbers(body, 'coordinate', { axis: look.across });
  const y = numbers(body, 'coordinate', { axis: look.up });
  return place(body, x, y, colour, (index) => `your program, ‘${column(body, 'token')[index]}’ at position ${column(body, 'position')[index]}`);
}

/** The limits of an axis over all steps, so that nothing but the points moves with the slider. */
export function limitsOf(body: Body, kind: Kind, axis: number): Limits {
  const values = numbers(body, 'coordinate', { kind, axis }).filter((value) => value !== null);
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [0, 0]);
  const margin = 0.06 * (high - low || 1);
  return [low - margin, high + margin];
}

/** The labels that points can have, in their order: digits, letters, depths. */
export function groupsOf(body: Body, colour: Colour): string[] {
  const seen = [...new Set(column(body, colour).map(String))];
  return seen.sort((one, other) => (colour === 'name' ? one.localeCompare(other) : Number(one) - Number(other)));
}

/** How many of the drawn points lie nearest to the mean of the others with their own label, and how many would by chance. */
export function tellApart(points: readonly Point[], colour: Colour): string {
  const groups = new Map<string, { x: number; y: number; n: number }>();
  for (const { x, y, group } of points) {
    const sum = groups.get(group) ?? { x: 0, y: 0, n: 0 };
    groups.set(group, { x: sum.x + x, y: sum.y + y, n: sum.n + 1 });
  }
  if (groups.size < 2) return '';
  const told = points.filter((point) => {
    const distances = [...groups].flatMap(([group, sum]) => {
      const own = group === point.group ? { x: sum.x - point.x, y: sum.y - point.y, n: sum.n - 1 } : sum; // the mean of the others
      return own.n ? [{ group, distance: Math.hypot(own.x / own.n - point.x, own.y / own.n - point.y) }] : [];
    });
    return distances.reduce((best, one) => (one.distance < best.distance ? one : best)).group === point.group;
  });
  return `In this plane ${formatPercent(told.length / points.length)} of the points lie nearest to the others of their ${colour}; by chance it would be ${formatPercent(1 / groups.size)}.`;
}

function place(body: Body, x: (number | null)[], y: (number | null)[], colour: Colour, called: (index: number) => string): Point[] {
  return x.map((value, index) => ({
    x: value ?? 0,
    y: y[index] ?? 0,
    group: String(colour === 'depth' && !body.coords.depth ? body.attrs?.depth : column(body, colour)[index]),
    name: `${called(index)}: ${column(body, 'name')[index]}, value ${column(body, 'value')[index]}`,
  }));
}

function column(body: Body, name: string): Value[] {
  return (body.coords[name]?.values ?? []) as Value[];
}
