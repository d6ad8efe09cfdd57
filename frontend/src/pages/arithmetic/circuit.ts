/** The matrices of the routing circuit as heat maps take them. */
import { labelsOf, numbers, type Body } from '../../api/body';
import { formatNumber } from '../../charts/format';

export const GROUPS: Record<string, string> = { all: 'all embeddings', token: 'tokens', variable: 'variables', number: 'numbers', position: 'positions' };

/** Which embeddings, by index, belong to a group. */
export function indicesOf(body: Body, axis: 'query' | 'key', group: string): number[] {
  const kinds = (body.coords[`${axis}_kind`]?.values ?? []).map(String);
  const wanted = (kind: string): boolean => group === 'all' || kind === group || (group === 'token' && kind !== 'position');
  return kinds.flatMap((kind, index) => (wanted(kind) ? [index] : []));
}

/** A label as short as an axis needs: `position 13` is p13. */
export function shortLabel(label: string): string {
  return label.replace(/^position /, 'p');
}

/** The block of QK1 between two groups: names and values row by row. */
export function blockOf(body: Body, from: string, to: string): { rows: string[]; columns: string[]; values: (number | null)[] } {
  const [queries, keys] = [indicesOf(body, 'query', from), indicesOf(body, 'key', to)];
  const [rows, columns] = [labelsOf(body, 'query').map(String), labelsOf(body, 'key').map(String)];
  const scores = numbers(body, 'qk1');
  return {
    rows: queries.map((index) => shortLabel(rows[index] ?? '')),
    columns: keys.map((index) => shortLabel(columns[index] ?? '')),
    values: queries.flatMap((query) => keys.map((key) => scores[query * columns.length + key] ?? null)),
  };
}

/** Between which two of the drawn embeddings the score is largest. */
export function tellLargest({ rows, columns, values }: ReturnType<typeof blockOf>): string {
  const at = values.reduce<number>((best, value, index) => ((value ?? -Infinity) > (values[best] ?? -Infinity) ? index : best), 0);
  return values[at] == null ? '' : `The largest score is from ${rows[Math.floor(at / columns.length)]} to ${columns[at % columns.length]}: ${formatNumber(values[at])}.`;
}

/** Position to position; where no variable of a number can stand is left out when `masked`. */
export function positionsOf(body: Body, masked: boolean): (number | null)[] {
  const { values } = blockOf(body, 'position', 'position');
  const allowed = body.variables.allowed?.values ?? [];
  return values.map((score, index) => (masked && !allowed[index] ? null : score));
}

/** The largest entry of each row of a square matrix that is drawn, as cells 'row,column'. */
export function largestCells(values: readonly (number | null)[], n: number): Set<string> {
  const found = new Set<string>();
  for (let row = 0; row < n; row += 1) {
    let best = -1;
    for (let column = 0; column < n; column += 1) {
      const value = values[row * n + column] ?? null;
      if (value !== null && (best < 0 || value > (values[row * n + best] ?? -Infinity))) best = column;
    }
    if (best >= 0) found.add(`${row},${best}`);
  }
  return found;
}

/** How many rows have a margin above 0, of how many that have one. */
export function countAhead(margins: readonly (number | null)[]): { ahead: number; of: number } {
  const known = margins.filter((margin) => margin !== null);
  return { ahead: known.filter((margin) => margin > 0).length, of: known.length };
}
