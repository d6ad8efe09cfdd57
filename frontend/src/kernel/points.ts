/** Quasi-random points as `bindscope.theory.kernel_points` makes them: shifted lattices, folded, as independent Gaussians. */
const EDGE = 1e-15;
const TIE = 1e-11;
const N_CANDIDATES = 256;
const vectors = new Map<string, number[]>();

/** Points [point × dimension] in the cube: the lattice moved by a shift and folded. */
export function latticePoints(nPoints: number, shift: ArrayLike<number>): Float64Array {
  const nDimensions = shift.length;
  const vector = generatingVector(nPoints, nDimensions);
  const points = new Float64Array(nPoints * nDimensions);
  for (let point = 0; point < nPoints; point += 1) {
    for (let dimension = 0; dimension < nDimensions; dimension += 1) {
      const moved = ((point * vector[dimension]!) % nPoints) / nPoints + shift[dimension]!;
      points[point * nDimensions + dimension] = 1 - Math.abs(2 * (moved - Math.floor(moved)) - 1);
    }
  }
  return points;
}

/** The lattice's step in each dimension, chosen one after the other for the least worst-case error; dimension j weighs 1/j². */
export function generatingVector(nPoints: number, nDimensions: number): number[] {
  const key = `${nPoints} ${nDimensions}`;
  const known = vectors.get(key);
  if (known) return known;
  const bernoulli = Float64Array.from({ length: nPoints }, (_, place) => 2 * Math.PI ** 2 * ((place / nPoints) ** 2 - place / nPoints + 1 / 6));
  const candidates = coprimeSteps(nPoints);
  const products = new Float64Array(nPoints).fill(1);
  const vector: number[] = [];
  for (let dimension = 0; dimension < nDimensions; dimension += 1) {
    const factor = (step: number, place: number): number => 1 + bernoulli[(step * place) % nPoints]! / (dimension + 1) ** 2;
    const tried = dimension ? candidates : candidates.slice(0, 1);
    const errors = tried.map((step) => products.reduce((sum, product, index) => sum + factor(step, index) * product, 0));
    const least = Math.min(...errors);
    const best = tried[errors.findIndex((error) => error <= least * (1 + TIE))]!; // the first of equals, however the sums are rounded
    vector.push(best);
    for (let place = 0; place < nPoints; place += 1) products[place]! *= factor(best, place);
  }
  vectors.set(key, vector);
  return vector;
}

function coprimeSteps(nPoints: number): number[] {
  const steps = Array.from({ length: Math.max(1, Math.floor(nPoints / 2)) }, (_, index) => index + 1).filter((step) => commonFactor(step, nPoints) === 1);
  if (steps.length <= N_CANDIDATES) return steps;
  return Array.from({ length: N_CANDIDATES }, (_, index) => steps[Math.round((index * (steps.length - 1)) / (N_CANDIDATES - 1))]!);
}

function commonFactor(first: number, second: number): number {
  return second ? commonFactor(second, first % second) : first;
}

/** The standard normal quantile (Wichura 1988, algorithm AS 241). */
export function toGaussian(point: number): number {
  const inside = Math.min(Math.max(point, EDGE), 1 - EDGE);
  const centred = inside - 0.5;
  const remainder = 0.180625 - centred * centred;
  if (remainder >= 0) return centred * ratio(remainder, CENTRE);
  const depth = Math.sqrt(-Math.log(Math.min(inside, 1 - inside)));
  return Math.sign(centred) * (depth <= 5 ? ratio(depth - 1.6, TAIL) : ratio(depth - 5, FAR_TAIL));
}

type Ratio = readonly (readonly [number, number])[];

function ratio(at: number, coefficients: Ratio): number {
  let above = 0;
  let below = 0;
  for (const [over, under] of coefficients) {
    above = above * at + over;
    below = below * at + under;
  }
  return above / below;
}

// numerator and denominator, highest power first
const CENTRE: Ratio = [
  [2509.0809287301227, 5226.495278852854],
  [33430.57558358813, 28729.085735721943],
  [67265.7709270087, 39307.89580009271],
  [45921.95393154987, 21213.794301586597],
  [13731.69376550946, 5394.196021424751],
  [1971.5909503065513, 687.1870074920579],
  [133.14166789178438, 42.31333070160091],
  [3.3871328727963665, 1],
];
const TAIL: Ratio = [
  [0.0007745450142783414, 1.0507500716444169e-9],
  [0.022723844989269184, 0.0005475938084995345],
  [0.2417807251774506, 0.015198666563616457],
  [1.2704582524523684, 0.14810397642748008],
  [3.6478483247632045, 0.6897673349851],
  [5.769497221460691, 1.6763848301838038],
  [4.630337846156546, 2.053191626637759],
  [1.4234371107496835, 1],
];
const FAR_TAIL: Ratio = [
  [2.0103343992922881e-7, 2.0442631033899397e-15],
  [2.7115555687434876e-5, 1.421511758316446e-7],
  [0.0012426609473880784, 1.8463183175100548e-5],
  [0.026532189526576124, 0.0007868691311456133],
  [0.29656057182850487, 0.014875361290850615],
  [1.7848265399172913, 0.1369298809227358],
  [5.463784911164114, 0.599832206555888],
  [6.657904643501103, 1],
];
