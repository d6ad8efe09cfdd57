/** What an intervention did to the answer: `bindscope.interventions.outcome`, where each number is explained. */
import type { Numbers } from './arithmetic';

export const UNITS = { success: 'fraction', kept: 'fraction', logit_difference: '1', new_logit: '1', kl: 'nat' } as const;
export type Metric = keyof typeof UNITS;
export const METRICS = Object.keys(UNITS) as Metric[];
const SMALLEST_RANGE = 1e-3;

/** The unchanged runs and their true answers, which a changed run is compared with. */
export interface Comparison {
  readonly base: Numbers; // [output]
  readonly source: Numbers;
  readonly baseAnswer: number;
  readonly sourceAnswer: number;
}

export function measureOutcome(logits: Numbers, to: Comparison): Record<Metric, number | null> {
  const { baseAnswer: old, sourceAnswer: next } = to;
  const top = argmax(logits);
  const margin = (values: Numbers): number => values[next]! - values[old]!;
  const moved = (value: number, start: number, end: number): number | null =>
    Math.abs(end - start) < SMALLEST_RANGE ? null : (value - start) / (end - start);
  const before = logFractions(to.base);
  const after = logFractions(logits);
  let kl = 0;
  before.forEach((fraction, output) => (kl += Math.exp(fraction) * (fraction - after[output]!)));
  return {
    success: top === next ? 1 : 0,
    kept: top === old ? 1 : 0,
    logit_difference: moved(margin(logits), margin(to.base), margin(to.source)),
    new_logit: moved(logits[next]!, to.base[next]!, to.source[next]!),
    kl: Math.max(0, kl),
  };
}

/** The index of the largest value, the first of equals. */
export function argmax(values: Numbers | Float64Array): number {
  let best = 0;
  for (let index = 1; index < values.length; index += 1) if (values[index]! > values[best]!) best = index;
  return best;
}

export function logFractions(logits: Numbers): Float64Array {
  const top = logits[argmax(logits)]!;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - top);
  return Float64Array.from(logits, (logit) => logit - top - Math.log(sum));
}

/** Probabilities [output] of logits. */
export function fractionsOf(logits: Numbers): number[] {
  return Array.from(logFractions(logits), Math.exp);
}
