/** What stands between the two maps of an MLP. */

export type Activation = (x: number) => number;

/** The normal distribution's Φ at the places 0, 1/64, … 8, and its slope there. */
const STEPS_PER_UNIT = 64;
const LIMIT = 8; // beyond it Φ is 0 or 1 in double precision's first 15 digits
const N_STEPS = LIMIT * STEPS_PER_UNIT;
const [HEIGHTS, SLOPES] = tabulateNormal();

export const ACTIVATIONS: Record<string, Activation> = {
  gelu: (x) => x * normal(x),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  relu: (x) => (x > 0 ? x : 0),
  cos: Math.cos,
};

/** Φ(x), to about 1e-10: a cubic through the heights and slopes of the two nearest places. */
export function normal(x: number): number {
  const size = x < 0 ? -x : x;
  let height = 1;
  if (size < LIMIT) {
    const place = size * STEPS_PER_UNIT;
    const below = Math.floor(place);
    const t = place - below;
    const rest = 1 - t;
    const level = HEIGHTS[below]! * (1 + 2 * t) * rest * rest + HEIGHTS[below + 1]! * t * t * (3 - 2 * t);
    height = level + (SLOPES[below]! * rest - SLOPES[below + 1]! * t) * t * rest;
  }
  return x < 0 ? 1 - height : height;
}

function tabulateNormal(): [Float64Array, Float64Array] {
  const heights = new Float64Array(N_STEPS + 1);
  const slopes = new Float64Array(N_STEPS + 1);
  for (let step = 0; step <= N_STEPS; step += 1) {
    const x = step / STEPS_PER_UNIT;
    const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
    let term = x;
    let sum = x; // Φ(x) = ½ + φ(x)·(x + x³/3 + x⁵/(3·5) + …)
    for (let odd = 3; term > sum * 1e-17; odd += 2) {
      term *= (x * x) / odd;
      sum += term;
    }
    heights[step] = 0.5 + density * sum;
    slopes[step] = density / STEPS_PER_UNIT;
  }
  return [heights, slopes];
}
