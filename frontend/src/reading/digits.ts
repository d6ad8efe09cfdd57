/** Distributions over outputs: bars of digits, the output on top, and shares in words. */
import { labelsOf, numbers, type At, type Body } from '../api/body';
import type { Bar } from '../charts/types';
import { DIGITS } from '../program/program';

/** What a digit stands for; the first role is drawn in the colour of the mechanism, the second in that of the shortcut. */
export type Role = readonly [digit: string, role: string];
const COLOURS = ['var(--systematic)', 'var(--heuristic)'];

/** A bar for each digit, and one for all that is no digit. */
export function digitBars(body: Body, at: At, roles: readonly Role[]): Bar[] {
  const outputs = labelsOf(body, 'output').map(String);
  const shares = sharesAt(body, at);
  const bars = [...DIGITS].map((digit): Bar => {
    const own = roles.filter(([which]) => which === digit).map(([, role]) => role);
    const first = roles.findIndex(([which]) => which === digit);
    const label = own.length ? `${digit} (${own.join(', ')})` : digit;
    return { label, value: shares[outputs.indexOf(digit)] ?? 0, colour: COLOURS[first] ?? 'var(--random)' };
  });
  const rest = shares.reduce((sum, share, index) => (DIGITS.includes(outputs[index] ?? '') ? sum : sum + share), 0);
  return [...bars, { label: 'no digit', value: Math.max(0, rest), colour: 'var(--random)' }];
}

/** The likeliest output, with its share. */
export function topOf(body: Body, at: At): { output: string; share: number } {
  const shares = sharesAt(body, at);
  const best = shares.indexOf(Math.max(...shares));
  return { output: String(labelsOf(body, 'output')[best] ?? ''), share: shares[best] ?? 0 };
}

/** A share without digits that say nothing: '93 %', '99.7 %'. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)} %`;
}

function sharesAt(body: Body, at: At): number[] {
  return numbers(body, 'probability', at).map((share) => share ?? 0);
}
