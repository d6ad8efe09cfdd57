/** The attention kernel of templates with fresh symbols: `bindscope.theory.kernel_attention`, where every step is explained. */
import { latticePoints, toGaussian } from './points';
import { eigenSymmetric, type Matrix } from './symmetric';

export interface Sampling {
  nOuter: number;
  nInner: number;
  nRandomisations: number;
}

/** K_attn in each randomisation: of a sequence with itself, and of two with no common symbol. */
export interface Moments {
  same: number[][]; // [randomisation][template]
  fresh: Matrix[]; // [randomisation][template][other]
}

const RANK_TOLERANCE = 1e-6; // of singular values, which are roots of eigenvalues here

/** Templates as codes: wildcards 0 … nWildcards − 1 and, above, tokens that all share. */
export function freshMoments(codes: number[][], nWildcards: number, beta: number, gamma: number, sampling: Sampling, random: () => number): Moments {
  const integrand = new Integrand(codes, nWildcards, beta, gamma);
  const nDimensions = integrand.rank + 2 * nWildcards;
  const moments: Moments = { same: [], fresh: [] };
  for (let round = 0; round < sampling.nRandomisations; round += 1) {
    const shift = Float64Array.from({ length: nDimensions }, random);
    const points = latticePoints(sampling.nOuter, shift);
    const sums = { same: codes.map(() => 0), fresh: codes.map(() => codes.map(() => 0)) };
    for (let outer = 0; outer < sampling.nOuter; outer += 1) {
      integrand.add(points.subarray(outer * nDimensions, (outer + 1) * nDimensions), sampling.nInner, sums);
    }
    moments.same.push(sums.same.map((sum) => sum / sampling.nOuter));
    moments.fresh.push(sums.fresh.map((row, left) => row.map((sum, right) => (sum + sums.fresh[right]![left]!) / 2 / sampling.nOuter)));
  }
  return moments;
}

class Integrand {
  readonly rank: number;
  readonly #mixing: number[][][]; // [template][position][outer dimension]
  readonly #kinds: number[][]; // [template][position]: its wildcard, or nWildcards for a shared token
  readonly #nShared: number;

  constructor(
    readonly codes: number[][],
    readonly nWildcards: number,
    readonly beta: number,
    readonly gamma: number,
  ) {
    this.#nShared = Math.max(0, ...codes.flat().map((code) => code - nWildcards + 1));
    this.#kinds = codes.map((row) => row.map((code) => Math.min(code, nWildcards)));
    this.#mixing = this.#mix();
    this.rank = this.#mixing[0]?.[0]?.length ?? 0;
  }

  /** Add what one outer point says to the sums of ‖features‖² and of products of inner means. */
  add(point: Float64Array, nInner: number, sums: { same: number[]; fresh: Matrix }): void {
    const gaussians = Array.from(point.subarray(0, this.rank), toGaussian);
    const shared = this.#mixing.map((places) => places.map((mix) => Math.exp(this.beta * mix.reduce((sum, weight, index) => sum + weight * gaussians[index]!, 0))));
    const sides = [0, 1].map((side) => this.#draw(point.subarray(this.rank + side * this.nWildcards, this.rank + (side + 1) * this.nWildcards), nInner));
    const features = sides.map((weights) => shared.map((row, template) => this.#average(template, row, weights, sums.same)));
    features[0]!.forEach((left, template) => {
      features[1]!.forEach((right, other) => {
        let product = 0;
        for (let index = 0; index < left.length; index += 1) product += left[index]! * right[index]!;
        sums.fresh[template]![other]! += product;
      });
    });
  }

  /** e^βw of the wildcards at each inner point, [inner × wildcard]. */
  #draw(shift: Float64Array, nInner: number): Float64Array[] {
    const points = latticePoints(nInner, shift).map((point) => Math.exp(this.beta * toGaussian(point)));
    return Array.from({ length: nInner }, (_, inner) => points.subarray(inner * this.nWildcards, (inner + 1) * this.nWildcards));
  }

  /** The mean features of a template over inner points; half their mean square is added to `same`. */
  #average(template: number, shared: number[], weights: Float64Array[], same: number[]): Float64Array {
    const last = this.nWildcards;
    const kinds = this.#kinds[template]!;
    const totals = new Float64Array(last + 1);
    const squares = new Float64Array(last + 1);
    const byToken = new Float64Array(this.#nShared);
    shared.forEach((weight, place) => {
      const kind = kinds[place]!;
      totals[kind]! += weight;
      squares[kind]! += weight * weight;
      if (kind === last) byToken[this.codes[template]![place]! - last]! += weight;
    });
    const mean = new Float64Array(last + 1);
    const meanSquare = new Float64Array(last + 1);
    for (const inner of weights) {
      let denominator = totals[last]!;
      for (let kind = 0; kind < last; kind += 1) denominator += totals[kind]! * inner[kind]!;
      for (let kind = 0; kind <= last; kind += 1) {
        const value = (kind === last ? 1 : inner[kind]!) / denominator;
        mean[kind]! += value / weights.length;
        meanSquare[kind]! += (value * value) / weights.length;
      }
    }
    const onTokens = byToken.reduce((sum, total) => sum + total * total, 0);
    for (let kind = 0; kind <= last; kind += 1) {
      const second = (kind === last ? onTokens : totals[kind]! ** 2) + this.gamma ** 2 * squares[kind]!;
      same[template]! += (meanSquare[kind]! * second) / 2;
    }
    const features = new Float64Array(shared.length + this.#nShared);
    shared.forEach((weight, place) => (features[place] = this.gamma * mean[kinds[place]!]! * weight));
    byToken.forEach((total, token) => (features[shared.length + token] = mean[last]! * total));
    return features;
  }

  /** The shared part of the logits as a mixture of as few Gaussians as it takes, largest first. */
  #mix(): number[][][] {
    const nPlaces = this.codes[0]!.length;
    const rows = this.codes.map((codes) => {
      const places = codes.map((code, place) => {
        const row = new Array<number>(this.#nShared + nPlaces).fill(0);
        if (code >= this.nWildcards) row[code - this.nWildcards] = 1;
        row[this.#nShared + place] = this.gamma;
        return row;
      });
      const means = places[0]!.map((_, column) => places.reduce((sum, row) => sum + row[column]!, 0) / nPlaces);
      return places.map((row) => row.map((value, column) => value - means[column]!));
    });
    const width = this.#nShared + nPlaces;
    const gram: Matrix = Array.from({ length: width }, (_, left) =>
      Array.from({ length: width }, (_, right) => rows.flat().reduce((sum, row) => sum + row[left]! * row[right]!, 0)),
    );
    const { values, vectors } = eigenSymmetric(gram);
    const kept = vectors.filter((_, index) => values[index]! > RANK_TOLERANCE ** 2 * Math.max(1, values.at(-1)!)).toReversed();
    return rows.map((places) => places.map((row) => kept.map((vector) => vector.reduce((sum, weight, column) => sum + weight * row[column]!, 0))));
  }
}
