/** A body as a table that other programs read. Its first lines, which begin with #, say where the numbers come from. */
import { labelsOf, partOf, type Body, type Labelled, type Shown, type Value } from '../api/body';
import { showProvenance } from './provenance';

/** What the panel shows: one row a cell, a column for each axis, further coordinate and variable. Without `shown`, everything. */
export function bodyToCsv(body: Body, title = body.title, shown?: Shown): string {
  const lines = shown ? rowsOfPart(partOf(body, shown)) : rowsOfAll(body);
  return `${[...preface(body, title, shown), ...lines.map((row) => row.map(quote).join(','))].join('\r\n')}\r\n`;
}

/** Title, provenance, what is shown, and the command, each on a line that begins with #. */
function preface(body: Body, title: string, shown: Shown | undefined): string[] {
  const part = shown ? partOf(body, shown) : body;
  const fixed = Object.entries(shown?.at ?? {}).flatMap(([name, label]) => (label === undefined ? [] : [`${name} ${[label].flat().join(', ')}`]));
  const units = Object.entries(part.variables).flatMap(([name, { units }]) => (units ? [`${name} in ${units}`] : []));
  const told = [
    title,
    showProvenance(body.provenance),
    shown ? `shown: ${[shown.variables.join(', '), ...fixed].join('; ')}` : 'everything that was measured',
    units.length ? `units: ${units.join(', ')}` : '',
    body.command,
  ];
  return told.filter(Boolean).map((line) => `# ${line.replaceAll(/\s+/g, ' ')}`);
}

function rowsOfPart(part: Body): Value[][] {
  const arrays = Object.values(part.variables);
  const frame = arrays.toSorted((one, other) => other.dims.length - one.dims.length)[0];
  if (!frame) return [];
  const beside = Object.keys(part.coords).filter((name) => !(name in part.sizes) && part.coords[name]?.dims.every((dim) => frame.dims.includes(dim)));
  const within = Object.entries(part.variables).filter(([, { dims }]) => dims.every((dim) => frame.dims.includes(dim)));
  const rows = [...cellsOf(part, frame)].map(({ at }) => [
    ...frame.dims.map((dim) => labelsOf(part, dim)[at[dim] ?? 0] ?? null),
    ...beside.map((coord) => valueAt(part, part.coords[coord], at)),
    ...within.map(([, array]) => valueAt(part, array, at)),
  ]);
  return [[...frame.dims, ...beside, ...within.map(([name]) => name)], ...rows];
}

/** Columns: variable, every axis, every further coordinate, value. What a variable does not have is left empty. */
function rowsOfAll(body: Body): Value[][] {
  const dims = Object.keys(body.sizes);
  const further = Object.keys(body.coords).filter((name) => !dims.includes(name));
  const rows = Object.entries(body.variables).flatMap(([name, array]) =>
    [...cellsOf(body, array)].map(({ at, value }): Value[] => [
      name,
      ...dims.map((dim) => (dim in at ? (labelsOf(body, dim)[at[dim] ?? 0] ?? null) : null)),
      ...further.map((coord) => valueAt(body, body.coords[coord], at)),
      value,
    ]),
  );
  return [['variable', ...dims, ...further, 'value'], ...rows];
}

/** One field as RFC 4180 writes it; what holds a # is quoted too, so that readers do not take it for a comment. */
export function quote(value: Value): string {
  if (value === null) return '';
  const text = String(value);
  return /[",#\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

interface Cell {
  at: Record<string, number>; // place along each axis
  value: Value;
}

/** Every cell of an array in its own order: the last axis runs fastest. */
export function* cellsOf(body: Body, array: Labelled): Generator<Cell> {
  const lengths = array.dims.map((dim) => body.sizes[dim] ?? 0);
  for (let index = 0; index < array.values.length; index += 1) {
    const at: Record<string, number> = {};
    let rest = index;
    for (let axis = lengths.length - 1; axis >= 0; axis -= 1) {
      const length = lengths[axis] || 1;
      at[array.dims[axis] ?? ''] = rest % length;
      rest = Math.floor(rest / length);
    }
    yield { at, value: array.values[index] as Value };
  }
}

/** A coordinate's value at a cell; null where the cell has no place along one of its axes. */
export function valueAt(body: Body, coordinate: Labelled | undefined, at: Record<string, number>): Value {
  if (!coordinate || coordinate.dims.some((dim) => !(dim in at))) return null;
  const offset = coordinate.dims.reduce((sum, dim) => sum * (body.sizes[dim] ?? 0) + (at[dim] ?? 0), 0);
  return (coordinate.values[offset] as Value | undefined) ?? null;
}
