/** The few operations a transformer is made of. Arrays are row by row; sums are in double precision. */

export type Numbers = Float32Array;

/** A linear map with its weights [output, input] and, where there is one, its bias [output]. */
export interface Linear {
  readonly nOut: number;
  readonly nIn: number;
  readonly weight: Numbers;
  readonly bias: Numbers | null;
}

export interface Norm {
  readonly weight: Numbers;
  readonly bias: Numbers;
}

export const EPSILON = 1e-5; // of LayerNorm

/** x·Wᵀ + b of rows [row, input], [row, output]. Four rows and two outputs at a time share what is read. */
export function applyLinear(map: Linear, x: Numbers): Numbers {
  const { nOut, nIn, weight, bias } = map;
  const nRows = x.length / nIn;
  const y = new Float32Array(nRows * nOut);
  let row = 0;
  if (nOut % 2 === 0) for (; row + 4 <= nRows; row += 4) applyToFour(map, x, row, y);
  for (; row < nRows; row += 1) {
    for (let output = 0; output < nOut; output += 1) {
      y[row * nOut + output] = dot(weight, output * nIn, x, row * nIn, nIn) + (bias ? bias[output]! : 0);
    }
  }
  return y;
}

function applyToFour({ nOut, nIn, weight, bias }: Linear, x: Numbers, row: number, y: Numbers): void {
  const start = row * nIn;
  const place = row * nOut;
  for (let output = 0; output < nOut; output += 2) {
    let a = bias ? bias[output]! : 0;
    let b = a;
    let c = a;
    let d = a;
    let e = bias ? bias[output + 1]! : 0;
    let f = e;
    let g = e;
    let h = e;
    const first = output * nIn;
    for (let input = 0; input < nIn; input += 1) {
      const one = weight[first + input]!;
      const two = weight[first + nIn + input]!;
      const at = start + input;
      a += one * x[at]!;
      e += two * x[at]!;
      b += one * x[at + nIn]!;
      f += two * x[at + nIn]!;
      c += one * x[at + 2 * nIn]!;
      g += two * x[at + 2 * nIn]!;
      d += one * x[at + 3 * nIn]!;
      h += two * x[at + 3 * nIn]!;
    }
    const to = place + output;
    y[to] = a;
    y[to + 1] = e;
    y[to + nOut] = b;
    y[to + nOut + 1] = f;
    y[to + 2 * nOut] = c;
    y[to + 2 * nOut + 1] = g;
    y[to + 3 * nOut] = d;
    y[to + 3 * nOut + 1] = h;
  }
}

/** Σ a·b of `length` numbers from two places, in four sums that do not wait for each other. */
export function dot(a: Numbers, atA: number, b: Numbers, atB: number, length: number): number {
  let one = 0;
  let two = 0;
  let three = 0;
  let four = 0;
  let index = 0;
  for (; index + 4 <= length; index += 4) {
    one += a[atA + index]! * b[atB + index]!;
    two += a[atA + index + 1]! * b[atB + index + 1]!;
    three += a[atA + index + 2]! * b[atB + index + 2]!;
    four += a[atA + index + 3]! * b[atB + index + 3]!;
  }
  for (; index < length; index += 1) one += a[atA + index]! * b[atB + index]!;
  return one + two + (three + four);
}

/** target += factor·source, `length` numbers from two places. */
export function addScaled(target: Numbers, at: number, source: Numbers, from: number, length: number, factor: number): void {
  for (let index = 0; index < length; index += 1) target[at + index]! += factor * source[from + index]!;
}

export function add(a: Numbers, b: Numbers): Numbers {
  const sum = new Float32Array(a.length);
  for (let index = 0; index < a.length; index += 1) sum[index] = a[index]! + b[index]!;
  return sum;
}

/** Each row with mean 0 and variance 1, then scaled and moved; the row itself where the model has no norm. */
export function applyNorm(norm: Norm | null, x: Numbers, width: number): Numbers {
  if (!norm) return x.slice();
  const y = new Float32Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    let mean = 0;
    for (let index = 0; index < width; index += 1) mean += x[start + index]!;
    mean /= width;
    let variance = 0;
    for (let index = 0; index < width; index += 1) variance += (x[start + index]! - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / width + EPSILON);
    for (let index = 0; index < width; index += 1) {
      y[start + index] = (x[start + index]! - mean) * scale * norm.weight[index]! + norm.bias[index]!;
    }
  }
  return y;
}

/** Make the first `length` numbers from `at` on positive and sum to 1, in place. */
export function softmax(values: Numbers | Float64Array, at: number, length: number): void {
  let top = -Infinity;
  for (let index = at; index < at + length; index += 1) top = Math.max(top, values[index]!);
  let sum = 0;
  for (let index = at; index < at + length; index += 1) {
    const fraction = Math.exp(values[index]! - top);
    values[index] = fraction;
    sum += fraction;
  }
  for (let index = at; index < at + length; index += 1) values[index]! /= sum;
}

/** Cosines and sines of position·θ, each [position, pair], rounded as the server rounds them. */
export interface Angles {
  readonly nPairs: number;
  readonly cos: Numbers;
  readonly sin: Numbers;
}

export function ropeAngles(nPositions: number, nTurning: number, base: number): Angles {
  const nPairs = nTurning / 2;
  const cos = new Float32Array(nPositions * nPairs);
  const sin = new Float32Array(nPositions * nPairs);
  for (let pair = 0; pair < nPairs; pair += 1) {
    const frequency = Math.fround(1 / Math.fround(base ** Math.fround((2 * pair) / nTurning)));
    for (let position = 0; position < nPositions; position += 1) {
      const angle = Math.fround(position * frequency);
      cos[position * nPairs + pair] = Math.cos(angle);
      sin[position * nPairs + pair] = Math.sin(angle);
    }
  }
  return { nPairs, cos, sin };
}

/** Turn the first dimensions of every head of [position, head, d_head], half against half, in place. */
export function rotate(x: Numbers, nHeads: number, width: number, angles: Angles, first = 0): void {
  const { nPairs, cos, sin } = angles;
  for (let start = 0; start < x.length; start += width) {
    const turn = (first + Math.floor(start / (nHeads * width))) * nPairs;
    for (let pair = 0; pair < nPairs; pair += 1) {
      const [one, other] = [x[start + pair]!, x[start + nPairs + pair]!];
      x[start + pair] = one * cos[turn + pair]! - other * sin[turn + pair]!;
      x[start + nPairs + pair] = other * cos[turn + pair]! + one * sin[turn + pair]!;
    }
  }
}
