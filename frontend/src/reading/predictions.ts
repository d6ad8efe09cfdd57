/** Predictions of a run at every saved checkpoint, as rows that can be ordered, counted and compared without asking anyone. */
import { labelsOf, numbers, type Body } from '../api/body';

export interface Program {
  index: number; // in the body
  text: string; // lines joined by line breaks
  answer: number;
  line1: number; // the constant of line 1
  attributes: Record<string, number>;
}

/** What was said to one program at one checkpoint. */
export interface Said {
  digit: number; // −1: no digit
  source: number; // the earliest line that assigns it, 0: none
  probability: number; // of the right answer
  line1: number; // of line 1's constant
  right: boolean;
}

export interface Predictions {
  steps: number[];
  programs: Program[];
  nLines: number;
  said: (step: number, program: number) => Said; // by indices along the axes
}

export function readPredictions(body: Body): Predictions {
  const steps = labelsOf(body, 'step').map(Number);
  const column = (name: string): number[] => (body.coords[name]?.values ?? []).map(Number);
  const names = Object.keys(body.coords).filter((name) => name.startsWith('attribute_'));
  const attributes = names.map((name) => [name.slice('attribute_'.length), column(name)] as const);
  const [answers, line1] = [column('answer'), column('rule_line_1')];
  const programs = (body.coords['text']?.values ?? []).map((text, index) => ({
    index,
    text: String(text),
    answer: answers[index] ?? -1,
    line1: line1[index] ?? -1,
    attributes: Object.fromEntries(attributes.map(([name, values]) => [name, values[index] ?? 0])),
  }));
  const [digits, sources, right, first] = ['predicted', 'source', 'probability', 'line_1_probability'].map((name) => numbers(body, name));
  const at = (values: (number | null)[] | undefined, step: number, program: number): number => values?.[step * programs.length + program] ?? 0;
  return {
    steps,
    programs,
    nLines: Math.max(0, ...programs.map((program) => program.attributes['lines'] ?? 0)),
    said: (step, program) => ({
      digit: at(digits, step, program),
      source: at(sources, step, program),
      probability: at(right, step, program),
      line1: at(first, step, program),
      right: at(digits, step, program) === programs[program]?.answer,
    }),
  };
}

/** The index of the first step from which a program stays right to the end; the number of steps where it never does. */
export function settledAt(predictions: Predictions, program: number): number {
  let index = predictions.steps.length;
  while (index > 0 && predictions.said(index - 1, program).right) index -= 1;
  return index;
}

/** The program to look at first: one that takes more than a hop and that line 1 does not answer. */
export function usualProgram({ programs }: Predictions): Program | null {
  return programs.find(({ attributes, answer, line1 }) => (attributes['depth'] ?? 0) > 1 && answer !== line1) ?? programs[0] ?? null;
}

/** The program that tells the short cut from the chain best: at `early` the model is surest of line 1's constant, which is wrong, and in the
end it is right. Longer chains come first; null where there is no such program. */
export function tellingProgram({ steps, programs, said }: Predictions, early: number): Program | null {
  const [from, last] = [steps.indexOf(early), steps.length - 1];
  const fooled = programs.filter(
    ({ index, answer, line1 }) => from >= 0 && answer !== line1 && said(from, index).digit === line1 && said(last, index).right,
  );
  const surest = fooled.sort((one, other) => said(from, other.index).line1 - said(from, one.index).line1);
  return surest.find(({ attributes }) => (attributes['depth'] ?? 0) > 1) ?? surest[0] ?? null;
}

/** The step at which an outcome is nearest to being true for half of the programs: there is most to explain there. */
export function mostUndecided({ steps, programs, said }: Predictions, outcome: 'right' | 'line_1'): number | null {
  const fraction = (step: number): number =>
    programs.filter(({ index, line1 }) => (outcome === 'right' ? said(step, index).right : said(step, index).digit === line1)).length / programs.length;
  const distances = steps.map((_, step) => Math.abs(fraction(step) - 0.5));
  return steps[distances.indexOf(Math.min(...distances))] ?? null;
}

export type Order = 'depth' | 'root_line' | 'settled' | 'drawn';
export const ORDERS: [Order, string][] = [
  ['depth', 'depth'],
  ['root_line', "the answer's line"],
  ['settled', 'the step from which it stays right'],
  ['drawn', 'as they were drawn'],
];

/** Programs in an order that shows something, equal ones by the step from which they stay right. */
export function orderPrograms(predictions: Predictions, order: Order, depth: number | null = null): Program[] {
  const chosen = predictions.programs.filter((program) => depth === null || program.attributes['depth'] === depth);
  if (order === 'drawn') return chosen;
  const settled = new Map(chosen.map((program) => [program.index, settledAt(predictions, program.index)]));
  const key = (program: Program): number => (order === 'settled' ? 0 : (program.attributes[order] ?? 0));
  return chosen.sort(
    (one, other) =>
      key(one) - key(other) || (settled.get(one.index) ?? 0) - (settled.get(other.index) ?? 0) || one.index - other.index,
  );
}

export type Quantity = 'right' | 'probability' | 'line1' | 'source';
export const QUANTITIES: [Quantity, string][] = [
  ['right', 'right or wrong'],
  ['probability', 'probability of the right answer'],
  ['line1', "probability of line 1's constant"],
  ['source', 'the line the prediction comes from'],
];

/** The values of a heatmap, row by row; a prediction that comes from no line has no source. */
export function cellsOf(predictions: Predictions, programs: Program[], quantity: Quantity): (number | null)[] {
  return programs.flatMap((program) =>
    predictions.steps.map((_, step) => {
      const said = predictions.said(step, program.index);
      if (quantity === 'right') return said.right ? 1 : 0;
      if (quantity === 'source') return said.source || null;
      return said[quantity];
    }),
  );
}

/** What was said, in words. */
export function tell(said: Said): string {
  if (said.digit < 0) return 'says no digit';
  const origin = said.source ? `line ${said.source}` : 'no line';
  return `says ${said.digit} (from ${origin}): ${said.right ? 'right' : 'wrong'}`;
}
