/** Labelled arrays as the server sends them, and ways to read them. */
import type { components } from './schema';

export type Body = components['schemas']['Body'];
export type Labelled = components['schemas']['Labelled'];
export type Provenance = components['schemas']['Provenance'];
export type Value = number | string | boolean | null;

/** Where to stand along some axes: by label for axes with coordinates. */
export type At = Record<string, Value>;

/** The labels along an axis; an axis without coordinates is counted from 0. */
export function labelsOf(body: Body, dim: string): Value[] {
  const found = body.coords[dim];
  if (found) return found.values as Value[];
  return Array.from({ length: body.sizes[dim] ?? 0 }, (_, index) => index);
}

/** The variable's values with some axes fixed, in the order of the axes that remain: `pick(body, 'success', {layer: 2})`. */
export function pick(body: Body, name: string, at: At = {}): Value[] {
  const array = body.variables[name];
  if (!array) throw new Error(`there is no '${name}' in '${body.title}'`);
  const lengths = array.dims.map((dim) => body.sizes[dim] ?? 0);
  const chosen = array.dims.map((dim) => (dim in at ? indexOf(body, dim, at[dim] ?? null) : null));
  const found: Value[] = [];
  const walk = (axis: number, offset: number): void => {
    if (axis === array.dims.length) {
      found.push(array.values[offset] as Value);
      return;
    }
    const length = lengths[axis] ?? 0;
    const fixed = chosen[axis];
    if (fixed !== null && fixed !== undefined) walk(axis + 1, offset * length + fixed);
    else for (let index = 0; index < length; index += 1) walk(axis + 1, offset * length + index);
  };
  walk(0, 0);
  return found;
}

/** As `pick`, for numbers: what is missing stays null. */
export function numbers(body: Body, name: string, at: At = {}): (number | null)[] {
  return pick(body, name, at).map((value) => (value === null ? null : Number(value)));
}

/** One number, or null. */
export function number(body: Body, name: string, at: At): number | null {
  return numbers(body, name, at)[0] ?? null;
}

function indexOf(body: Body, dim: string, label: Value): number {
  const index = labelsOf(body, dim).findIndex((known) => known === label || String(known) === String(label));
  if (index < 0) throw new Error(`'${label}' is not along '${dim}' in '${body.title}'`);
  return index;
}
