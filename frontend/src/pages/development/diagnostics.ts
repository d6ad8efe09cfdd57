/** Plateau diagnostics by layer, head or group of parameters, and which of them announces the end of the plateau. */
import { labelsOf, number, numbers, type Body } from '../../api/body';
import type { Series } from '../../charts/types';
import { curves, stepsOf } from '../../reading/curves';

export const SHOWN: Readonly<Record<string, string>> = {
  repetition: 'repetition of answers',
  collapse: 'cosine between positions',
  answer_collapse: 'cosine between answers',
  participation: 'participation ratio',
  entropy: 'head entropies',
  signal_to_noise: 'gradient signal-to-noise',
  fisher: 'Fisher trace',
  hessian: 'Hessian trace',
};

/** A diagnostic over training: one curve, or one for each layer, head or group; repetition beside that of the correct answers. */
export function diagnosticSeries(body: Body, name: string): Series[] {
  const dims = (body.variables[name]?.dims ?? []).filter((dim) => dim !== 'step');
  if (name === 'repetition') {
    return [...curves(body, name, undefined, () => 'answers'), ...curves(body, 'repetition_true', undefined, () => 'correct answers').map((one) => ({ ...one, dashed: true }))];
  }
  if (dims.length === 2) {
    const x = stepsOf(body);
    return labelsOf(body, 'layer').flatMap((layer) => labelsOf(body, 'head').map((head) => ({ name: `L${layer}.H${head}`, x, y: numbers(body, name, { layer, head }) })));
  }
  const [dim] = dims;
  return dim ? curves(body, name, dim, (label) => (dim === 'layer' ? `L${label}` : label)) : curves(body, name, undefined, () => SHOWN[name] ?? name);
}

export interface Announcement {
  number: string;
  departs: number | null;
  lead: number | null;
  announces: boolean;
  baseRate: number | null;
}

/** Every number with when it leaves its range; the earliest first, what never does last. */
export function announcementsOf(body: Body): Announcement[] {
  const found = labelsOf(body, 'number').map((label) => ({
    number: String(label),
    departs: number(body, 'departs', { number: label }),
    lead: number(body, 'lead', { number: label }),
    announces: number(body, 'announces', { number: label }) === 1,
    baseRate: number(body, 'base_rate', { number: label }),
  }));
  return found.sort((first, second) => (first.departs ?? Infinity) - (second.departs ?? Infinity));
}
