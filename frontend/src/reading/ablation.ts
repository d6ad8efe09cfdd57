/** What taking parts out did, in a sentence. */
import type { Body } from '../api/body';
import { topOf } from './digits';

export function tellAblation(body: Body, nParts: number, format: (fraction: number) => string): string {
  const answer = String(body.attrs?.answer ?? '');
  const [before, after] = [topOf(body, { condition: 'before' }), topOf(body, { condition: 'after' })];
  const right = (output: string): string => (output === answer ? 'which is right' : `right would be ${answer}`);
  if (!nParts) return `The whole model says ${before.output} (${format(before.fraction)}), ${right(before.output)}. Choose parts to take out.`;
  if (before.output === after.output) return `It still says ${after.output} (${format(before.fraction)} before, ${format(after.fraction)} after), ${right(after.output)}.`;
  return `It said ${before.output} (${format(before.fraction)}); without ${nParts === 1 ? 'this part' : 'these parts'} it says ${after.output} (${format(after.fraction)}), ${right(after.output)}.`;
}
