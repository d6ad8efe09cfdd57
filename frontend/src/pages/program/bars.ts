/** A model's answer as bars, and in a sentence. */
import { labelsOf, numbers, type Body } from '../../api/body';
import type { Bar } from '../../charts/types';
import { DIGITS } from '../../program/program';

export interface Answered {
  answer: string; // what is right
  line1: string; // what the shortcut says
}

export function answered(body: Body): Answered {
  return { answer: String(body.attrs?.answer ?? ''), line1: String(body.attrs?.line_1 ?? '') };
}

/** A bar for each digit, and one for all that is no digit. */
export function digitBars(body: Body, step: number): Bar[] {
  const { answer, line1 } = answered(body);
  const outputs = labelsOf(body, 'output').map(String);
  const shares = numbers(body, 'probability', { step }).map((share) => share ?? 0);
  const bars = [...DIGITS].map((digit): Bar => {
    const roles = [...(digit === answer ? ['answer'] : []), ...(digit === line1 ? ['line 1'] : [])];
    const label = roles.length ? `${digit} (${roles.join(', ')})` : digit;
    const colour = digit === answer ? 'var(--systematic)' : digit === line1 ? 'var(--heuristic)' : 'var(--random)';
    return { label, value: shares[outputs.indexOf(digit)] ?? 0, colour };
  });
  const rest = shares.reduce((sum, share, index) => (DIGITS.includes(outputs[index] ?? '') ? sum : sum + share), 0);
  return [...bars, { label: 'no digit', value: rest, colour: 'var(--random)' }];
}

/** Which output is likeliest, how likely, and what that means. */
export function tellAnswer(body: Body, step: number): string {
  const { answer, line1 } = answered(body);
  const shares = numbers(body, 'probability', { step }).map((share) => share ?? 0);
  const best = shares.indexOf(Math.max(...shares));
  const output = String(labelsOf(body, 'output')[best]);
  const meaning =
    output === answer
      ? output === line1
        ? ', which is right, and is also the constant of line 1'
        : ', which is right'
      : output === line1
        ? `, the constant of line 1. The right answer is ${answer}`
        : `. The right answer is ${answer}`;
  return `The model says ${output} (${percent(shares[best] ?? 0)})${meaning}.`;
}

/** Probability over steps of the answer, of line 1's constant and of everything else. */
export function answerCurves(body: Body): { answer: number[]; line1: number[] | null; rest: number[] } {
  const { answer, line1 } = answered(body);
  const of = (output: string): number[] => numbers(body, 'probability', { output }).map((share) => share ?? 0);
  const right = of(answer);
  const shortcut = line1 === answer || !line1 ? null : of(line1);
  const rest = right.map((share, index) => Math.max(0, 1 - share - (shortcut?.[index] ?? 0)));
  return { answer: right, line1: shortcut, rest };
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)} %`;
}
