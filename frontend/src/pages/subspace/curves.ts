/** How much can be read off a subspace, and what swapping it does, over training: found, refitted, random. */
import { labelsOf, numbers, type Body } from '../../api/body';
import type { Series } from '../../charts/types';

export type Measure = 'score' | 'success';
export const MEASURES: Record<Measure, string> = {
  score: 'labels read off',
  success: 'answers changed by a swap',
};
const KINDS: Record<string, { name: string; colour: string; dashed?: boolean }> = {
  frozen: { name: 'found at the last step', colour: 'var(--systematic)' },
  refitted: { name: 'found again at each step', colour: 'var(--heuristic)', dashed: true },
  random: { name: 'random, of equal rank', colour: 'var(--random)' },
};

export function curvesOf(body: Body, measure: Measure): Series[] {
  const x = labelsOf(body, 'step').map(Number);
  return Object.entries(KINDS).map(([kind, look]) => ({
    ...look,
    x,
    y: numbers(body, measure, { kind }),
    low: numbers(body, `${measure}_low`, { kind }),
    high: numbers(body, `${measure}_high`, { kind }),
  }));
}
