/** A model's answer as bars, and in a sentence. */
import { numbers, type Body } from '../../api/body';
import type { Bar } from '../../charts/types';
import { digitBars, percent, topOf } from '../../reading/digits';

export interface Answered {
  answer: string; // what is right
  line1: string; // what the shortcut says
}

export function answered(body: Body): Answered {
  return { answer: String(body.attrs?.answer ?? ''), line1: String(body.attrs?.line_1 ?? '') };
}

/** A bar for each digit, the answer's and that of line 1 named. */
export function answerBars(body: Body, step: number): Bar[] {
  const { answer, line1 } = answered(body);
  return digitBars(body, { step }, [[answer, 'answer'], [line1, 'line 1']]); // prettier-ignore
}

/** Which output is likeliest, how likely, and what that means. */
export function tellAnswer(body: Body, step: number): string {
  const { answer, line1 } = answered(body);
  const { output, fraction } = topOf(body, { step });
  const meaning =
    output === answer
      ? output === line1
        ? ', which is right, and is also the constant of line 1'
        : ', which is right'
      : output === line1
        ? `, the constant of line 1. The right answer is ${answer}`
        : `. The right answer is ${answer}`;
  return `The model says ${output} (${percent(fraction)})${meaning}.`;
}

/** Probability over steps of the answer, of line 1's constant and of everything else. */
export function answerCurves(body: Body): { answer: number[]; line1: number[] | null; rest: number[] } {
  const { answer, line1 } = answered(body);
  const of = (output: string): number[] => numbers(body, 'probability', { output }).map((fraction) => fraction ?? 0);
  const right = of(answer);
  const shortcut = line1 === answer || !line1 ? null : of(line1);
  const rest = right.map((fraction, index) => Math.max(0, 1 - fraction - (shortcut?.[index] ?? 0)));
  return { answer: right, line1: shortcut, rest };
}
