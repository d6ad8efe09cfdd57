/** Points of the residual stream along two axes, at one step, as the scatter takes them. */
import { labelsOf, numbers, type Body, type Value } from '../../api/body';
import type { Limits } from '../../charts/colour';
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
