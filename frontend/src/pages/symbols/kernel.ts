/** The kernel's body as drawings and words. */
import { labelsOf, pick, type Body } from '../../api/body';
import type { Limits } from '../../charts/colour';
import { formatNumber } from '../../charts/format';
import type { Series } from '../../charts/types';

export const SIGNS: Record<string, string> = { learnable: '✓', 'not learnable': '✗', undecided: '?', 'not covered': '–' };

/** The named task that has exactly these templates and labels, if its kernel is stored. */
export function chooseTask(tasks: Body, texts: readonly string[], labels: readonly number[] | null): string | null {
  const wanted = texts.join(' ');
  for (const name of labelsOf(tasks, 'task').map(String)) {
    const of = (column: string): string => String(pick(tasks, column, { task: name })[0] ?? '');
    if (of('templates') !== wanted || pick(tasks, 'stored', { task: name })[0] !== true) continue;
    const own = of('labels').split(',').map(Number);
    const same = own.some(Number.isNaN) ? labels === null : labels !== null && labels.length === own.length && own.every((label, row) => label === labels[row]);
    if (same) return name;
  }
  return null;
}

/** The ends of the colours: the least and the greatest value, two digits, outwards. */
export function limitsOf(values: readonly (number | null)[]): Limits {
  const known = values.filter((value): value is number => value !== null);
  if (!known.length) return [0, 1];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const unit = 10 ** Math.floor(Math.log10(Math.max(most - least, Math.abs(most) * 1e-3, 1e-12)) - 1);
  const clean = (value: number): number => Number(value.toPrecision(6));
  return [clean(Math.floor(least / unit) * unit), clean(Math.ceil(most / unit) * unit)];
}

/** `0.2591 ± 0.00002` */
export function showError(value: number | null, error: number | null): string {
  if (value === null || error === null) return formatNumber(value);
  if (error < 1e-9) return value.toFixed(6);
  return `${value.toFixed(Math.min(10, Math.max(3, -Math.floor(Math.log10(error)))))} ± ${error.toPrecision(1)}`;
}

/** Eigenvalues with their intervals; what an interval has below 0 is cut there, which the axis has a place for. */
export function eigenSeries(rows: readonly { value: number; low: number; high: number }[]): Series[] {
  const positive = (value: number): number => Math.max(0, value);
  return [
    {
      name: 'eigenvalue', marked: true, x: rows.map((_, index) => index + 1), y: rows.map(({ value }) => positive(value)),
      low: rows.map(({ low }) => positive(low)), high: rows.map(({ high }) => positive(high)),
    },
  ]; // prettier-ignore
}
