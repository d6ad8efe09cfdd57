/** What a cell of the lens can show, on which scale, and in words. */
import { labelsOf, number, numbers, pick, type Body } from '../../api/body';
import type { Limits, ScaleName } from '../../charts/colour';
import { percent } from '../../reading/digits';

export const READINGS = {
  answer: 'probability of the answer',
  line_1: "probability of line 1's constant",
  margin: 'answer above line 1, in logits',
  top: 'likeliest token',
  entropy: 'undecidedness (entropy)',
} as const;
/** What of the body each of these is made of. */
export const VARIABLES: Record<keyof typeof READINGS, string[]> = {
  answer: ['answer'],
  line_1: ['line_1'],
  margin: ['answer_logit', 'line_1_logit'],
  top: ['top', 'top_probability'],
  entropy: ['entropy'],
};
export type Reading = keyof typeof READINGS;

export interface Shown {
  values: (number | null)[]; // layer by layer
  limits: Limits;
  scale: ScaleName;
}

/** Values over (layer, position) with their fixed limits. */
export function readLens(body: Body, reading: Reading): Shown {
  if (reading === 'margin') {
    const line1 = numbers(body, 'line_1_logit');
    const values = numbers(body, 'answer_logit').map((logit, index) => (logit ?? 0) - (line1[index] ?? 0));
    return { values, limits: [-10, 10], scale: 'diverging' };
  }
  if (reading === 'entropy') return { values: numbers(body, 'entropy'), limits: [0, Math.log2(40)], scale: 'sequential' };
  return { values: numbers(body, reading === 'top' ? 'top_probability' : reading), limits: [0, 1], scale: 'sequential' };
}

/** The residual stream after none, one, two … layers, named by the layer it has just left. */
export function layerNames(body: Body): string[] {
  return labelsOf(body, 'layer').map((layer) => (Number(layer) === 0 ? 'embedding' : `after L${Number(layer) - 1}`));
}

export function tellCell(body: Body, layer: number, position: number): string {
  const at = { layer: labelsOf(body, 'layer')[layer] ?? 0, position: labelsOf(body, 'position')[position] ?? 0 };
  const fraction = (name: string): string => percent(number(body, name, at) ?? 0);
  const top = String(pick(body, 'top', at)[0]);
  const bits = (number(body, 'entropy', at) ?? 0).toFixed(2);
  return `likeliest '${top}' ${fraction('top_probability')}; answer ${fraction('answer')}, line 1 ${fraction('line_1')}; ${bits} bits`;
}

/** From which layer on the answer stands above line 1's constant at the colon, and from which it is likeliest. */
export function tellLens(body: Body): string {
  const position = labelsOf(body, 'position').at(-1) ?? 0;
  const names = layerNames(body);
  const [answer, line1] = [numbers(body, 'answer_logit', { position }), numbers(body, 'line_1_logit', { position })];
  const above = answer.map((logit, layer) => (logit ?? 0) > (line1[layer] ?? 0));
  const likely = numbers(body, 'answer', { position }).map((fraction) => (fraction ?? 0) > 0.5);
  const since = (flags: boolean[]): string | null => (flags.at(-1) ? (names[flags.lastIndexOf(false) + 1] ?? null) : null);
  const [overtakes, certain] = [since(above), since(likely)];
  if (overtakes === null) return "At the colon the answer does not overtake line 1's constant in the last layer.";
  const same = body.attrs?.answer_digit === body.attrs?.line_1_digit;
  const first = same ? '' : `At the colon the answer stands above line 1's constant ${overtakes === 'embedding' ? 'from the embedding on' : `for good ${overtakes}`}`;
  const then = certain === null ? 'it never becomes likelier than all else' : `it is likelier than all else together ${certain}`;
  return same ? `Line 1 holds the answer itself; ${then}.` : `${first}; ${then}.`;
}
