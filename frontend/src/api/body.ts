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

/** What a panel draws of a body: some variables, with some axes fixed or some of their labels. */
export interface Shown {
  variables: string[];
  at?: Record<string, Value | Value[] | undefined>; // by an axis, or by a coordinate along one; several labels keep the axis
}

/** Only that part of the body, with the intervals of its variables. Labels that are not there fix nothing. */
export function partOf(body: Body, { variables, at = {} }: Shown): Body {
  const names = variables.flatMap((name) => [name, `${name}_low`, `${name}_high`]).filter((name) => name in body.variables);
  const kept = new Map(Object.entries(body.sizes).map(([dim, size]) => [dim, Array.from({ length: size }, (_, index) => index)]));
  const fixed = new Set<string>();
  for (const [name, wanted] of Object.entries(at)) {
    const dim = name in body.sizes ? name : body.coords[name]?.dims.length === 1 ? (body.coords[name].dims[0] ?? '') : '';
    const labels = labelsOf(body, name);
    if (wanted === undefined) continue;
    const found = (kept.get(dim) ?? []).filter((index) => [wanted].flat().some((label) => String(label) === String(labels[index])));
    if (!found.length) continue;
    kept.set(dim, found);
    if (dim === name && !Array.isArray(wanted)) fixed.add(dim);
  }
  const cut = (array: Labelled): Labelled => ({ ...array, dims: array.dims.filter((dim) => !fixed.has(dim)), values: cellsAmong(body, array, kept) as Labelled['values'] });
  const found = Object.fromEntries(names.map((name) => [name, cut(body.variables[name] as Labelled)]));
  const dims = new Set(Object.values(found).flatMap((array) => array.dims));
  const coords = Object.entries(body.coords).map(([name, array]): [string, Labelled] => [name, cut(array)]);
  return {
    ...body,
    sizes: Object.fromEntries([...dims].map((dim) => [dim, kept.get(dim)?.length ?? 0])),
    coords: Object.fromEntries(coords.filter(([, array]) => array.dims.length && array.dims.every((dim) => dims.has(dim)))),
    variables: found,
  };
}

/** The array's values at the kept indices along each of its axes, in their order. */
function cellsAmong(body: Body, array: Labelled, kept: ReadonlyMap<string, number[]>): Value[] {
  const offsets = array.dims.reduce<number[]>(
    (starts, dim) => starts.flatMap((start) => (kept.get(dim) ?? []).map((index) => start * (body.sizes[dim] ?? 0) + index)),
    [0],
  );
  return offsets.map((offset) => array.values[offset] as Value);
}

function indexOf(body: Body, dim: string, label: Value): number {
  const index = labelsOf(body, dim).findIndex((known) => known === label || String(known) === String(label));
  if (index < 0) throw new Error(`'${label}' is not along '${dim}' in '${body.title}'`);
  return index;
}
