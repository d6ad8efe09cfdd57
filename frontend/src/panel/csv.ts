/** A body as a table that other programs read: one row for each cell of each variable, with its coordinates. */
import { labelsOf, type Body, type Labelled, type Value } from '../api/body';

/** Columns: variable, every axis, every further coordinate, value. What a variable does not have is left empty. */
export function bodyToCsv(body: Body): string {
  const dims = Object.keys(body.sizes);
  const further = Object.keys(body.coords).filter((name) => !dims.includes(name));
  const lines = [['variable', ...dims, ...further, 'value'].map(quote).join(',')];
  for (const [name, array] of Object.entries(body.variables)) {
    for (const cell of cellsOf(body, array)) {
      const along = dims.map((dim) => (dim in cell.at ? (labelsOf(body, dim)[cell.at[dim] ?? 0] ?? null) : null));
      const beside = further.map((coord) => valueAt(body, body.coords[coord], cell.at));
      lines.push([name, ...along, ...beside, cell.value].map(quote).join(','));
    }
  }
  return `${lines.join('\r\n')}\r\n`;
}

/** One field as RFC 4180 writes it. */
export function quote(value: Value): string {
  if (value === null) return '';
  const text = String(value);
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
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
