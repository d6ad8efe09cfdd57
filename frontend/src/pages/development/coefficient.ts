/** The local learning coefficient: its chains at one checkpoint, what they say of themselves, and its rows. */
import { labelsOf, number, numbers, type Body } from '../../api/body';
import type { Series } from '../../charts/types';
import { curves } from '../../reading/curves';

/** nβ (L(w) − L(w*)) along each chain of one checkpoint. */
export function traces(body: Body, step: number): Series[] {
  const x = labelsOf(body, 'draw').map(Number);
  return labelsOf(body, 'chain').map((chain) => ({ name: `chain ${Number(chain) + 1}`, x, y: numbers(body, 'trace', { step, chain }) }));
}

/** Whether the chains of a checkpoint may be trusted, in a sentence. */
export function verdictOf(body: Body, step: number): string {
  const read = (name: string): number => number(body, name, { step }) ?? NaN;
  if (read('diverged') === 1) return 'The chains diverged at this step size: there is no coefficient here.';
  if (read('left') === 1) return 'The loss rises so far along the chains that they have left the neighbourhood: the number says little about this checkpoint.';
  const below = read('negative');
  if (below > 0.5) return `${(100 * below).toFixed(0)} % of the draws have a lower loss than the checkpoint: it is no minimum, and the number tells of a slope.`;
  return read('settled') === 1 ? 'The chains have settled.' : 'The chains still move: the number is not settled.';
}

/** The rows of the refined coefficient: one layer's weights alone, or some questions alone. */
export function rowsOf(body: Body, which: 'layers' | 'questions'): Series[] {
  const parts = body.coords['part']?.values ?? [];
  const names = labelsOf(body, 'row').filter((_, index) => (parts[index] === 'all') === (which === 'questions'));
  return curves(body, 'coefficient', 'row').filter(({ name }) => names.includes(name)).map((one) => ({ ...one, marked: true }));
}
