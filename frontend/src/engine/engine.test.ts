import { describe, expect, it } from 'vitest';
import { ACTIVATIONS, normal } from './activations';
import { applyLinear, applyNorm, dot, EPSILON, ropeAngles, rotate, softmax } from './arithmetic';
import { createEngine } from './engine';
import { runModel, runToAnswer } from './forward';
import { gridCells } from './grid';
import { buildModel, type Model, type Shape } from './model';
import { keepRun, resumeRun } from './resume';
import { halfToNumber, readTensors, type Tensor } from './safetensors';
import { readSite } from './sites';
import { keyOf, placesOf, Recorder, Writer } from './taps';

const SHAPE: Shape = {
  d_vocab: 7, n_positions: 9, d_out: null, n_layers: 3, n_heads: 2, d_model: 8, d_head: 6, d_mlp: 10, causal: true,
  positions: 'rope', rope_base: 100, rope_fraction: 0.67, norm: 'layer', bias: true, activation: 'gelu', mlp_layers: null,
  tied: false, identity_qk: true, identity_vo: true, identity_gain: 1.5,
}; // prettier-ignore
const BASE = [1, 4, 2, 6, 0, 3, 5];
const SOURCE = [1, 4, 2, 3, 0, 3, 5];

/** Numbers between −1 and 1 that are the same at every run. */
function draw(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  };
}

function drawModel(shape: Shape, seed = 17): Model {
  return buildModel(shape, new Map(drawTensors(shape, seed)));
}

function drawTensors(shape: Shape, seed = 17): [string, Tensor][] {
  const next = draw(seed);
  const { d_model: d, d_mlp: inner } = shape;
  const heads = shape.n_heads * shape.d_head;
  const sizes: Record<string, number[]> = { 'embed.weight': [shape.d_vocab, d], 'norm.weight': [d], 'norm.bias': [d] };
  sizes['unembed.weight'] = [shape.d_vocab, d];
  sizes.pos_embed = [shape.n_positions, d];
  for (let layer = 0; layer < shape.n_layers; layer += 1) {
    const own = {
      'norm1.weight': [d], 'norm1.bias': [d], 'norm2.weight': [d], 'norm2.bias': [d],
      'attention.qkv.weight': [3 * heads, d], 'attention.qkv.bias': [3 * heads], 'attention.out.weight': [d, heads],
      'attention.out.bias': [d], 'attention.identity_a': [shape.n_heads], 'attention.identity_b': [shape.n_heads],
      'mlp.up.weight': [inner, d], 'mlp.up.bias': [inner], 'mlp.down.weight': [d, inner], 'mlp.down.bias': [d],
    }; // prettier-ignore
    for (const [name, size] of Object.entries(own)) sizes[`blocks.${layer}.${name}`] = size;
  }
  return Object.entries(sizes).map(([name, size]): [string, Tensor] => {
    const values = Float32Array.from({ length: size.reduce((product, length) => product * length, 1) }, next);
    return [name, { shape: size, values }];
  });
}

/** The weights of `drawModel` as a file. */
function weightsFile(shape: Shape): ArrayBuffer {
  const numbers: number[] = [];
  const head: Record<string, object> = {};
  for (const [name, { shape: size, values }] of drawTensors(shape)) {
    head[name] = { dtype: 'F32', shape: size, data_offsets: [4 * numbers.length, 4 * (numbers.length + values.length)] };
    numbers.push(...values);
  }
  return fileOf(head, Float32Array.from(numbers).buffer);
}

function expectClose(found: ArrayLike<number>, expected: ArrayLike<number>, tolerance = 1e-5): void {
  expect(found.length).toBe(expected.length);
  const size = Math.max(1, ...Array.from(expected, Math.abs));
  Array.from(found).forEach((value, index) => expect(Math.abs(value - expected[index]!) / size).toBeLessThan(tolerance));
}

function fileOf(head: object, numbers: ArrayBuffer): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(head));
  const file = new Uint8Array(8 + text.length + numbers.byteLength);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  file.set(new Uint8Array(numbers), 8 + text.length);
  return file.buffer;
}

describe('safetensors', () => {
  it('reads half and single precision side by side', () => {
    const bytes = new Uint8Array(12);
    new DataView(bytes.buffer).setUint16(0, 0x3c00, true); // 1
    new DataView(bytes.buffer).setUint16(2, 0xc100, true); // −2.5
    bytes.set(new Uint8Array(new Float32Array([0.1, -7]).buffer), 4);
    const head = {
      __metadata__: { step: '3' },
      half: { dtype: 'F16', shape: [2], data_offsets: [0, 4] },
      full: { dtype: 'F32', shape: [1, 2], data_offsets: [4, 12] },
    };
    const tensors = readTensors(fileOf(head, bytes.buffer));
    expect([...tensors.keys()]).toEqual(['half', 'full']);
    expect([...tensors.get('half')!.values]).toEqual([1, -2.5]);
    expect([...tensors.get('full')!.values]).toEqual([Math.fround(0.1), -7]);
  });

  it('knows the ends of half precision', () => {
    expect([0x0001, 0x03ff, 0x0400, 0x7bff, 0x8000].map(halfToNumber)).toEqual([2 ** -24, 1023 * 2 ** -24, 2 ** -14, 65504, -0]);
    expect([0x7c00, 0xfc00].map(halfToNumber)).toEqual([Infinity, -Infinity]);
    expect(halfToNumber(0x7e00)).toBeNaN();
  });

  it('refuses what is cut off, of the wrong size, or of another type', () => {
    const entry = { dtype: 'F32', shape: [2], data_offsets: [0, 8] };
    const file = fileOf({ x: entry }, new ArrayBuffer(8));
    expect(() => readTensors(file.slice(0, 20))).toThrow('cut off');
    expect(() => readTensors(new ArrayBuffer(3))).toThrow('cut off');
    expect(() => readTensors(fileOf({ x: { ...entry, shape: [3] } }, new ArrayBuffer(8)))).toThrow("'x' has 2");
    expect(() => readTensors(fileOf({ x: { ...entry, dtype: 'BF16' } }, new ArrayBuffer(8)))).toThrow('BF16');
  });
});

describe('arithmetic', () => {
  it('maps rows as the sum says, whatever their number', () => {
    const next = draw(3);
    const map = { nOut: 6, nIn: 5, weight: Float32Array.from({ length: 30 }, next), bias: Float32Array.from({ length: 6 }, next) };
    for (const nRows of [1, 4, 7]) {
      const x = Float32Array.from({ length: nRows * 5 }, next);
      const expected = Array.from({ length: nRows * 6 }, (_, place) => {
        const [row, output] = [Math.floor(place / 6), place % 6];
        return map.bias[output]! + [0, 1, 2, 3, 4].reduce((sum, i) => sum + map.weight[output * 5 + i]! * x[row * 5 + i]!, 0);
      });
      expectClose(applyLinear(map, x), expected, 1e-6);
    }
    expect(dot(Float32Array.of(9, 1, 2, 3, 4, 5), 1, Float32Array.of(1, 1, 1, 1, 2), 0, 5)).toBe(20);
  });

  it('gives each normed row mean 0 and the variance that ε leaves', () => {
    const plain = { weight: new Float32Array(4).fill(1), bias: new Float32Array(4) };
    const y = applyNorm(plain, Float32Array.of(1, 2, 3, 4, 10, 10, 10, 10), 4);
    expect(Math.abs(y[0]! + y[1]! + y[2]! + y[3]!)).toBeLessThan(1e-6);
    expect((y[0]! ** 2 + y[1]! ** 2 + y[2]! ** 2 + y[3]! ** 2) / 4).toBeCloseTo(1.25 / (1.25 + EPSILON), 6);
    expect([...y.subarray(4)]).toEqual([0, 0, 0, 0]);
    const moved = applyNorm({ weight: Float32Array.of(2, 2), bias: Float32Array.of(5, 5) }, Float32Array.of(-1, 1), 2);
    expectClose(moved, [3, 7], 1e-4);
  });

  it('shares out one among neighbours, however large they are', () => {
    const values = Float32Array.of(7, 1000, 1000 + Math.log(3), 7);
    softmax(values, 1, 2);
    expectClose(values, [7, 0.25, 0.75, 7], 1e-4);
  });

  it('turns queries and keys so that their product knows only their distance', () => {
    const angles = ropeAngles(40, 4, 50);
    const next = draw(5);
    const [query, key] = [0, 1].map(() => Float32Array.from({ length: 6 }, next));
    const turned = (x: Float32Array, position: number): Float32Array => {
      const copy = x.slice();
      rotate(copy, 1, 6, angles, position);
      return copy;
    };
    expect([...turned(query!, 0)]).toEqual([...query!]);
    expect([...turned(query!, 9).subarray(4)]).toEqual([...query!.subarray(4)]); // the part that does not turn
    const product = (m: number, n: number): number => dot(turned(query!, m), 0, turned(key!, n), 0, 6);
    expect(product(30, 21)).toBeCloseTo(product(9, 0), 5);
    expect(Math.abs(product(30, 21) - product(30, 22))).toBeGreaterThan(1e-3);
  });

  it('knows the normal distribution to ten digits', () => {
    // Φ at 0, 1, 2 and 3, from tables
    expectClose([0, 1, 2, 3].map(normal), [0.5, 0.841344746069, 0.977249868052, 0.998650101968], 1e-10);
    for (let x = -9; x < 9; x += 0.137) expect(normal(x) + normal(-x)).toBeCloseTo(1, 12);
    expect(Math.abs(ACTIVATIONS.gelu!(0.7) - ACTIVATIONS.gelu_tanh!(0.7))).toBeLessThan(1e-3);
  });
});

describe('runs', () => {
  const kinds: [string, Partial<Shape>][] = [
    ['rotating, with identity scaling', {}],
    ['plain', { identity_qk: false, identity_vo: false, positions: 'learned' }],
    ['bare', { norm: 'none', bias: false, activation: 'relu', mlp_layers: [1], positions: 'none', tied: true }],
  ];
  it.each(kinds)('resumed in the middle are as if run again: %s', (_, change) => {
    const model = drawModel({ ...SHAPE, ...change });
    const kept = keepRun(model, BASE);
    const whole = runModel(model, BASE);
    expectClose(kept.logits, whole.subarray(whole.length - 7), 1e-6);
    for (let layer = 0; layer < 3; layer += 1) {
      const stream = kept.layers[layer]!.stream.slice(2 * 8);
      expectClose(resumeRun(kept, layer, 2, stream), kept.logits);
    }
  });

  it.each(kinds)('of a grid equal single patches: %s', (_, change) => {
    const model = drawModel({ ...SHAPE, ...change });
    const sides = { model, sourceModel: drawModel(model.shape, 23), base: BASE, source: SOURCE };
    const names = {
      residual: (cell: number) => `L${cell % 3}.resid_pre@${Math.floor(cell / 3)}`,
      heads: (cell: number) => `L${Math.floor(cell / 2)}.H${cell % 2}`,
      mlps: (cell: number) => `L${(model.shape.mlp_layers ?? [0, 1, 2])[cell]}.mlp_out`,
    };
    for (const grid of ['residual', 'heads', 'mlps'] as const) {
      for (const cells of gridCells(sides, grid)) {
        cells.logits.forEach((logits, index) => {
          const site = readSite(names[grid](cells.at + index), model.shape, BASE.length);
          const recorder = new Recorder(new Set([keyOf(site.layer, site.name)]));
          runModel(sides.sourceModel, SOURCE, recorder);
          const patched = runModel(model, BASE, new Writer([site], model.shape, BASE.length, recorder.kept));
          expectClose(logits, patched.subarray(patched.length - 7));
        });
      }
    }
  });

  it('see nothing of what comes later', () => {
    const model = drawModel(SHAPE);
    const [early, late] = [runModel(model, BASE.slice(0, 3)), runModel(model, BASE)];
    expectClose(early, late.subarray(0, early.length), 1e-6);
  });
});

describe('models', () => {
  it('of an unknown kind, or with other weights, are refused', () => {
    expect(() => drawModel({ ...SHAPE, causal: false })).toThrow('causal = false');
    expect(() => drawModel({ ...SHAPE, activation: 'swish' })).toThrow('activation = swish');
    for (const [name, value] of Object.entries({ norm: 'rms', parallel: true, gated: true, n_kv_heads: 1, norm_epsilon: 1e-6 })) {
      expect(() => drawModel({ ...SHAPE, [name]: value })).toThrow(`the browser cannot run a model with ${name} = ${value}`);
    }
    expect(() => drawModel({ ...SHAPE, parallel: false, gated: false, n_kv_heads: null, norm_epsilon: 1e-5 })).not.toThrow();
    expect(() => buildModel(SHAPE, new Map())).toThrow("'embed.weight' should be 56 numbers");
  });

  it('have the sites that are named, also as TransformerLens does, and no others', () => {
    expect(readSite('L2.H1', SHAPE, 7)).toEqual({ name: 'result', layer: 2, head: 1, positions: null });
    expect(readSite('L0.resid_pre@2,4', SHAPE, 7).positions).toEqual([2, 4]);
    for (const [hook, site] of [
      ['blocks.2.hook_resid_pre@2,4', 'L2.resid_pre@2,4'],
      ['blocks.1.attn.hook_attn_scores', 'L1.scores'],
      ['blocks.1.attn.hook_z', 'L1.z'],
      ['blocks.0.mlp.hook_post@1', 'L0.post@1'],
      ['ln_final.hook_normalized', 'final'],
      ['hook_embed', 'embed'],
    ] as const) {
      expect(readSite(hook, SHAPE, 7)).toEqual(readSite(site, SHAPE, 7));
    }
    const wrong = [
      ...['L3.resid_pre', 'L0.H2', 'L0.resid_pre@7', 'resid_pre', 'L0.embed', 'L0.H1.mlp_out', 'L0.nose', '@', 'pos_embed'],
      ...['blocks.3.hook_resid_pre', 'blocks.0.hook_z', 'blocks.hook_z', 'hook_resid_pre', 'blocks.0.attn.hook_nose'],
    ];
    for (const text of wrong) expect(() => readSite(text, SHAPE, 7)).toThrow(`site '${text}'`);
  });
});

describe('work that nobody waits for', () => {
  it('ends at the next checkpoint, also where the answer is one body', async () => {
    const shape = { ...SHAPE, d_vocab: 40, n_positions: 30 };
    const steps = [0, 1, 2, 3, 4];
    const detail = { summary: { family: 'binding', kinds: ['programs'], steps }, config: { model: shape, task: {} } };
    const asked: string[] = [];
    let left = Infinity; // models until the reader leaves
    const engine = createEngine(
      (path) => {
        asked.push(path);
        const text = new TextEncoder().encode(JSON.stringify(detail));
        return Promise.resolve(path.endsWith('run.json') ? text.buffer : weightsFile(shape));
      },
      () => ((left -= 1) < 0 ? Promise.reject(new Error('left')) : Promise.resolve()),
    );
    const pair = { program: 'a=5;b=a;#b:', counterfactual: 'a=7;b=a;#b:', sites: ['L1.resid_pre@2'] };
    for (const operation of ['patch', 'predict']) {
      [left, asked.length] = [2, 0];
      await expect(engine(operation, { run: operation, steps, ...pair }).next()).rejects.toThrow('left');
      expect(asked.filter((path) => path.includes('weights'))).toHaveLength(2);
      left = Infinity;
      const { value } = await engine(operation, { run: operation, steps, ...pair }).next();
      expect((value as { sizes: object }).sizes).toMatchObject({ step: 5 });
    }
  });
});

describe('the last position alone', () => {
  it('is what the whole run says there, attention seen and written too', () => {
    for (const shape of [SHAPE, { ...SHAPE, positions: 'learned', mlp_layers: [1], identity_qk: false, identity_vo: false } as Shape]) {
      const model = drawModel(shape);
      const lastOf = (logits: Float32Array): number[] => [...logits.slice(-model.nOutputs)];
      expect([...runToAnswer(model, BASE)]).toEqual(lastOf(runModel(model, BASE) as Float32Array));
      const sites = [0, 2].map((layer) => ({ name: 'pattern' as const, layer, head: null, positions: null }));
      const [whole, short] = [new Recorder(placesOf(sites)), new Recorder(placesOf(sites))];
      runModel(model, SOURCE, whole);
      runToAnswer(model, SOURCE, short);
      expect(short.kept).toEqual(whole.kept);
      const writer = (): Writer => new Writer(sites, model.shape, BASE.length, whole.kept);
      const patched = lastOf(runModel(model, BASE, writer()) as Float32Array);
      expect([...runToAnswer(model, BASE, writer())]).toEqual(patched);
      expect(patched).not.toEqual(lastOf(runModel(model, BASE) as Float32Array));
    }
  });
});
