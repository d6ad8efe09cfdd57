/** Eigenvalues and eigenvectors of symmetric matrices by Jacobi's rotations: slow for large ones, exact to rounding for small. */
export type Matrix = number[][];

export interface Eigen {
  values: number[]; // smallest first
  vectors: Matrix; // one a row, in the same order
}

export function eigenSymmetric(matrix: Matrix): Eigen {
  const n = matrix.length;
  const a = matrix.map((row) => [...row]);
  const vectors: Matrix = a.map((_, row) => a.map((_, column) => (row === column ? 1 : 0)));
  for (let sweep = 0; sweep < 60; sweep += 1) {
    let rest = 0;
    for (let p = 0; p < n; p += 1) for (let q = p + 1; q < n; q += 1) rest += a[p]![q]! ** 2;
    if (rest < 1e-300) break;
    for (let p = 0; p < n; p += 1) for (let q = p + 1; q < n; q += 1) rotate(a, vectors, p, q);
  }
  const order = a.map((_, index) => index).sort((one, other) => a[one]![one]! - a[other]![other]!);
  return { values: order.map((index) => a[index]![index]!), vectors: order.map((index) => vectors[index]!) };
}

/** One rotation that makes the entry (p, q) vanish; vectors are kept as rows. */
function rotate(a: Matrix, vectors: Matrix, p: number, q: number): void {
  const off = a[p]![q]!;
  if (off === 0) return;
  const theta = (a[q]![q]! - a[p]![p]!) / (2 * off);
  const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const c = 1 / Math.sqrt(t * t + 1);
  const s = t * c;
  for (const row of a) {
    const [left, right] = [row[p]!, row[q]!];
    row[p] = c * left - s * right;
    row[q] = s * left + c * right;
  }
  for (const rows of [a, vectors]) {
    const [upper, lower] = [rows[p]!, rows[q]!];
    rows[p] = upper.map((value, index) => c * value - s * lower[index]!);
    rows[q] = upper.map((value, index) => s * value + c * lower[index]!);
  }
}
