/** Distributions over outputs: bars of digits, the output on top, and fractions in words. */
import { labelsOf, numbers, type At, type Body } from '../api/body';
import type { Bar } from '../charts/types';
import { DIGITS } from '../program/program';

/** What a digit stands for; the first role is drawn in the colour of the mechanism, the second in that of the shortcut. */
export type Role = readonly [digit: string, role: string];
const COLOURS = ['var(--systematic)', 'var(--heuristic)'];

/** A bar for each digit, and one for all that is no digit. */
export function digitBars(body: Body, at: At, roles: readonly Role[]): Bar[] {
  const outputs = labelsOf(body, 'output').map(String);
  const fractions = fractionsAt(body, at);
  const bars = [...DIGITS].map((digit): Bar => {
    const own = roles.filter(([which]) => which === digit).map(([, role]) => role);
    const first = roles.findIndex(([which]) => which === digit);
    const label = own.length ? `${digit} (${own.join(', ')})` : digit;
    return { label, value: fractions[outputs.indexOf(digit)] ?? 0, colour: COLOURS[first] ?? 'var(--random)' };
  });
  const rest = fractions.reduce((sum, fraction, index) => (DIGITS.includes(outputs[index] ?? '') ? sum : sum + fraction), 0);
  return [...bars, { label: 'no digit', value: Math.max(0, rest), colour: 'var(--random)' }];
}

/** The likeliest output, with its fraction. */
export function topOf(body: Body, at: At): { output: string; fraction: number } {
  const fractions = fractionsAt(body, at);
  const best = fractions.indexOf(Math.max(...fractions));
  return { output: String(labelsOf(body, 'output')[best] ?? ''), fraction: fractions[best] ?? 0 };
}

/** A fraction without digits that say nothing: '93 %', '99.7 %', '100 %'. */
export function percent(fraction: number): string {
  return `${Number((100 * fraction).toFixed(fraction > 0.995 || fraction < 0.005 ? 1 : 0))} %`;
}

function fractionsAt(body: Body, at: At): number[] {
  return numbers(body, 'probability', at).map((fraction) => fraction ?? 0);
}
