/** Parts of a later checkpoint in one on the plateau: bars of what each carries, and of when each cell leaves. */
import { labelsOf, number, numbers, type Body } from '../../api/body';
import { seriesColour } from '../../charts/colour';
import type { Bar } from '../../charts/types';

export const CONDITIONS = [
  { name: 'trained', words: 'given, trained on', colour: 'var(--systematic)' },
  { name: 'frozen', words: 'given, frozen', colour: seriesColour(2) },
  { name: 'random', words: 'changed at random, trained on', colour: 'var(--random)' },
  { name: 'held', words: 'held as it was, all else trained', colour: 'var(--heuristic)' },
] as const;

/** A bar for each part: how far it carries the model of one step towards that of the other; a tick at the largest change at random. */
export function wayBars(body: Body, donor: string, direction: string): Bar[] {
  return labelsOf(body, 'part').map((part) => {
    const at = { donor, direction, part };
    const drawn = numbers(body, 'random_fraction', { donor, part }).filter((value): value is number => value !== null);
    return {
      label: String(part),
      value: number(body, 'total_fraction', at),
      low: number(body, 'total_fraction_low', at),
      high: number(body, 'total_fraction_high', at),
      colour: direction === 'reproduce' ? 'var(--systematic)' : 'var(--heuristic)',
      ...(direction === 'reproduce' && drawn.length ? { reference: Math.max(...drawn) } : {}),
    };
  });
}

/** A bar for each part in one condition: the mean of the steps until the plateau is left, from the soonest to the latest order of
 * the data; a cell that did not leave counts as `most`. The tick is the mean without any part. */
export function leftBars(body: Body, condition: string, most: number): Bar[] {
  const colour = CONDITIONS.find(({ name }) => name === condition)?.colour ?? seriesColour(0);
  const reference = mean(numbers(body, 'baseline_left').map((step) => step ?? most));
  return labelsOf(body, 'part').map((part) => {
    const left = numbers(body, 'left', { part, condition }).map((step) => step ?? most);
    return { label: String(part), value: mean(left), low: Math.min(...left), high: Math.max(...left), colour, reference };
  });
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
