/** Reads the weights of a checkpoint: 8 bytes with the length of a JSON head, the head, then the numbers themselves. */

export interface Tensor {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

const MOST_HEAD = 10_000_000; // bytes; a longer head is not one of ours

/** Every tensor by name, in single precision: `readTensors(file).get('embed.weight')`. */
export function readTensors(file: ArrayBuffer): Map<string, Tensor> {
  const { head, start } = readHead(file);
  const tensors = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries(head)) {
    if (name === '__metadata__') continue;
    const { dtype, shape, data_offsets: offsets } = entry;
    const bytes = file.slice(start + offsets[0], start + offsets[1]);
    const values = toNumbers(name, dtype, bytes);
    const size = shape.reduce((product, length) => product * length, 1);
    if (values.length !== size) throw new Error(`these weights are damaged: '${name}' has ${values.length} numbers.`);
    tensors.set(name, { shape, values });
  }
  return tensors;
}

function readHead(file: ArrayBuffer): { head: Record<string, Entry>; start: number } {
  const view = new DataView(file);
  const length = file.byteLength < 8 ? MOST_HEAD : Number(view.getBigUint64(0, true));
  if (length > Math.min(MOST_HEAD, file.byteLength - 8)) throw new Error('these weights are damaged: their head is cut off.');
  const text = new TextDecoder().decode(new Uint8Array(file, 8, length));
  return { head: JSON.parse(text) as Record<string, Entry>, start: 8 + length };
}

function toNumbers(name: string, dtype: string, bytes: ArrayBuffer): Float32Array {
  if (dtype === 'F32') return new Float32Array(bytes);
  if (dtype === 'F16') return Float32Array.from(new Uint16Array(bytes), halfToNumber);
  throw new Error(`'${name}' is stored as ${dtype}; this page reads F32 and F16.`);
}

/** A half-precision number from its 16 bits: sign, 5 bits of exponent, 10 of fraction. */
export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
