/** A body as tables a person can read: the first axes down, the last across. */
import { labelsOf, type Body, type Labelled, type Value } from '../api/body';
import { describeSplit } from '../reading/splits';
import { valueAt } from './csv';

export const MAX_ROWS = 500;
const MAX_COLUMNS = 60;

export interface Table {
  name: string; // of what is shown
  headers: string[];
  nHeaders: number; // how many of the first columns say which row it is
  rows: Value[][];
  note: string; // what was left out
}

/** What there is to choose: a variable with several axes alone, those with one axis or none together. */
export function tablesOf(body: Body): string[] {
  const found = new Map<string, string[]>();
  for (const [name, array] of Object.entries(body.variables)) {
    const key = array.dims.length > 1 ? `= ${name}` : array.dims.join();
    found.set(key, [...(found.get(key) ?? []), name]);
  }
  return [...found.values()].map((names) => names.join(', '));
}

/** One of `tablesOf`. */
export function tableOf(body: Body, name: string): Table {
  const names = name.split(', ').filter((part) => part in body.variables);
  const first = body.variables[names[0] ?? ''];
  if (!first) return { name, headers: [], nHeaders: 0, rows: [], note: '' };
  return first.dims.length > 1 ? crossTable(body, names[0] ?? '', first) : flatTable(body, names, first.dims[0]);
}

/** A label in words; JSON and CSV keep the codes. */
function wordOf(dim: string, label: Value): Value {
  return dim === 'split' ? describeSplit(String(label)).title : label;
}

function flatTable(body: Body, names: string[], dim: string | undefined): Table {
  const arrays = names.map((name) => body.variables[name] as Labelled);
  const length = dim === undefined ? 1 : (body.sizes[dim] ?? 0);
  const beside = dim === undefined ? [] : coordinatesAlong(body, dim);
  const rows = Array.from({ length: Math.min(length, MAX_ROWS) }, (_, index) => [
    ...(dim === undefined ? [] : [wordOf(dim, labelsOf(body, dim)[index] ?? null)]),
    ...beside.map((coord) => (body.coords[coord]?.values[index] ?? null) as Value),
    ...arrays.map((array) => (array.values[index] ?? null) as Value),
  ]);
  const headers = [...(dim === undefined ? [] : [dim]), ...beside, ...names.map((name, index) => withUnits(name, arrays[index]))];
  return { name: names.join(', '), headers, nHeaders: (dim === undefined ? 0 : 1) + beside.length, rows, note: leftOut(length, 0) };
}

function crossTable(body: Body, name: string, array: Labelled): Table {
  const down = array.dims.slice(0, -1);
  const across = array.dims.at(-1) ?? '';
  const width = body.sizes[across] ?? 0;
  const length = down.reduce((product, dim) => product * (body.sizes[dim] ?? 0), 1);
  const beside = down.flatMap((dim) => coordinatesAlong(body, dim));
  const rows = Array.from({ length: Math.min(length, MAX_ROWS) }, (_, index) => {
    const at = placeOf(body, down, index);
    return [
      ...down.map((dim) => wordOf(dim, labelsOf(body, dim)[at[dim] ?? 0] ?? null)),
      ...beside.map((coord) => valueAt(body, body.coords[coord], at)),
      ...array.values.slice(index * width, index * width + Math.min(width, MAX_COLUMNS)),
    ] as Value[];
  });
  const labels = labelsOf(body, across).slice(0, MAX_COLUMNS);
  const headers = [...down, ...beside, ...labels.map((label) => `${across} ${label}`)];
  return { name: withUnits(name, array), headers, nHeaders: down.length + beside.length, rows, note: leftOut(length, width) };
}

function placeOf(body: Body, dims: string[], index: number): Record<string, number> {
  const at: Record<string, number> = {};
  let rest = index;
  for (const dim of dims.toReversed()) {
    const length = body.sizes[dim] || 1;
    at[dim] = rest % length;
    rest = Math.floor(rest / length);
  }
  return at;
}

/** Coordinates that say more about an axis than its own labels. */
function coordinatesAlong(body: Body, dim: string): string[] {
  return Object.entries(body.coords).flatMap(([name, array]) => (name !== dim && array.dims.join() === dim ? [name] : []));
}

function withUnits(name: string, array: Labelled | undefined): string {
  return array?.units ? `${name} (${array.units})` : name;
}

function leftOut(length: number, width: number): string {
  const parts = [];
  if (length > MAX_ROWS) parts.push(`the first ${MAX_ROWS} of ${length.toLocaleString('en')} rows`);
  if (width > MAX_COLUMNS) parts.push(`the first ${MAX_COLUMNS} of ${width.toLocaleString('en')} columns`);
  return parts.length ? `Shown: ${parts.join(' and ')}. The downloads hold all.` : '';
}

/** A value as a reader wants to see it. */
export function showValue(value: Value): string {
  if (value === null) return '–';
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 0.001 && size < 1e6 ? value.toFixed(size < 1 ? 4 : size < 100 ? 3 : 1) : value.toExponential(2);
}
