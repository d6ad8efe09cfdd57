/** Where a sum says that its tokens should look, and how much of the attention goes there. */
import { labelsOf, numbers, type Body } from '../../api/body';
import type { Bar, Series } from '../../charts/types';
import { N_PREFIX, OPERAND_POSITIONS, type Sum } from '../../sums/sum';

const EQUALS = 15;

/** Cells 'query,key' of one layer's map: in the first, = to its operands and numbers to the variable before them; in the last, = to the operands' numbers. */
export function expectedLooks(sum: Sum, layer: number, nLayers: number): Set<string> {
  const looks = new Set<string>();
  if (layer === 1) {
    for (const { position } of sum.assignments) looks.add(`${position + 1},${position}`);
    for (const position of OPERAND_POSITIONS) looks.add(`${EQUALS},${position}`);
  }
  if (layer === nLayers) for (const { valuePosition } of sum.operands) looks.add(`${EQUALS},${valuePosition}`);
  return looks;
}

/** One layer's map at one step, row by row; what a token cannot see is missing. */
export function patternOf(body: Body, step: number, layer: number): (number | null)[] {
  const n = body.sizes.query ?? 0;
  return numbers(body, 'pattern', { step, layer }).map((weight, cell) => (cell % n > Math.floor(cell / n) ? null : weight));
}

/** The attention of = to some columns, added up: one number a step. */
export function lookOfEquals(body: Body, layer: number, columns: readonly number[]): number[] {
  const each = [...new Set(columns)].map((key) => numbers(body, 'pattern', { layer, query: EQUALS, key }));
  return labelsOf(body, 'step').map((_, index) => each.reduce((sum, weights) => sum + (weights[index] ?? 0), 0));
}

/** Probability of the answer and the looks of = over training. */
export function sumCurves(body: Body): Series[] {
  const x = labelsOf(body, 'step').map(Number);
  const values = (body.coords.value_position?.values ?? []).map(Number);
  const layers = labelsOf(body, 'layer').map(Number);
  const last = layers.at(-1) ?? 1;
  const answer = String(body.attrs?.answer);
  return [
    { name: `probability of ${answer}`, x, y: numbers(body, 'probability', { output: answer }) },
    { name: 'layer 1: = to the operands', x, y: lookOfEquals(body, 1, OPERAND_POSITIONS), dashed: true },
    { name: `layer ${last}: = to their values`, x, y: lookOfEquals(body, last, values), dashed: true },
  ];
}

/** The likeliest answers at a step, the right one always among them, most likely first. */
export function answerBars(body: Body, step: number, most = 8): Bar[] {
  const outputs = labelsOf(body, 'output').map(String);
  const fractions = numbers(body, 'probability', { step });
  const right = String(body.attrs?.answer);
  const order = outputs.map((_, index) => index).sort((one, other) => (fractions[other] ?? 0) - (fractions[one] ?? 0));
  const chosen = order.slice(0, most);
  if (!chosen.some((index) => outputs[index] === right)) chosen.splice(-1, 1, outputs.indexOf(right));
  return chosen.map((index) => ({
    label: outputs[index] === right ? `${outputs[index]} (answer)` : (outputs[index] ?? ''),
    value: fractions[index] ?? 0,
    colour: outputs[index] === right ? 'var(--systematic)' : 'var(--random)',
  }));
}

/** `The model says 36 (99 %), which is right.` */
export function tellSum(body: Body, step: number, percent: (fraction: number) => string): string {
  const fractions = numbers(body, 'probability', { step }).map((fraction) => fraction ?? 0);
  const best = fractions.indexOf(Math.max(...fractions));
  const said = String(labelsOf(body, 'output')[best]);
  const right = String(body.attrs?.answer);
  return `The model says ${said} (${percent(fractions[best] ?? 0)})${said === right ? ', which is right' : `. The right answer is ${right}`}.`;
}

/** How much of the attention of = goes where the circuit would look, in each layer that has such looks. */
export function tellLooks(body: Body, sum: Sum, step: number, percent: (fraction: number) => string): string {
  const layers = labelsOf(body, 'layer').map(Number);
  const told = layers.flatMap((layer) => {
    const keys = [...expectedLooks(sum, layer, layers.length)].map((cell) => cell.split(',').map(Number)).filter(([query]) => query === EQUALS);
    const weights = numbers(body, 'pattern', { step, layer, query: EQUALS });
    return keys.length ? [`${percent(keys.reduce((total, [, key]) => total + (weights[key ?? -1] ?? 0), 0))} in layer ${layer}, at ${layer === 1 ? 'the operands' : 'their numbers'}`] : [];
  });
  return `= attends where the circuit would with ${told.join(', and ')}.`;
}

/** A sum in words: `Answer 36: b is 17, written at position 6; 19 stands at position 14. 10 of the first 12 positions are empty.` */
export function tellValues(sum: Sum): string {
  const [first, second] = sum.operands;
  const tell = ({ variable, value, valuePosition }: Sum['operands'][number]): string =>
    variable ? `${variable} is ${value}, written at position ${valuePosition}` : `${value} stands at position ${valuePosition}`;
  return `Answer ${sum.answer}: ${tell(first)}; ${tell(second)}. ${sum.symbols.slice(0, N_PREFIX).filter((symbol) => symbol === 'PAD').length} of the first ${N_PREFIX} positions are empty.`;
}
