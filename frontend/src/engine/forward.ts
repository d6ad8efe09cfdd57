/** One forward pass on one row of tokens, every activation in the reader's hand: `bindscope.model.transformer` in TypeScript.

Identity scaling adds, for each head h and with x after LayerNorm, a_h·x·xᵀ to the scores and b_h·pattern·x to the output. */
import {
  add,
  addScaled,
  applyLinear,
  applyNorm,
  dot,
  ropeAngles,
  rotate,
  softmax,
  type Angles,
  type Linear,
  type Numbers,
} from './arithmetic';
import type { Layer, Model } from './model';
import type { SiteName } from './sites';

/** Sees every activation, and may change it in place. */
export interface Tap {
  wants(layer: number | null, name: SiteName): boolean;
  see(layer: number | null, name: SiteName, value: Numbers): void;
}

const SILENT: Tap = { wants: () => false, see: () => undefined };

/** What the queries of a layer attend to: everything up to the last position, [position, …]. */
export interface Seen {
  readonly keys: Numbers;
  readonly values: Numbers;
  readonly normed: Numbers; // the residual stream after LayerNorm, for identity scaling
}

export interface Attended {
  readonly z: Numbers; // [query, head, d_head]
  readonly pattern: Numbers; // [head, query, key]
}

/** Logits [position, output] of a row of tokens. */
export function runModel(model: Model, tokens: readonly number[], tap: Tap = SILENT): Numbers {
  const angles = anglesOf(model, tokens.length);
  let x = embed(model, tokens, tap);
  for (const [index, layer] of model.layers.entries()) {
    tap.see(index, 'resid_pre', x);
    x = add(x, attention(model, layer, index, applyNorm(layer.norm1, x, model.shape.d_model), angles, tap));
    if (layer.mlp) {
      tap.see(index, 'resid_mid', x);
      x = add(x, mlp(model, layer, index, x, tap));
    }
    tap.see(index, 'resid_post', x);
  }
  return toLogits(model, x, tap);
}

/** Logits of the last position alone: behind the last layer's attention nothing is worked out for the others. A tap sees attention, nothing after it. */
export function runToAnswer(model: Model, tokens: readonly number[], tap: Tap = SILENT): Numbers {
  const { d_model: width } = model.shape;
  const angles = anglesOf(model, tokens.length);
  let x = embed(model, tokens, SILENT);
  for (const [index, layer] of model.layers.entries()) {
    x = add(x, attention(model, layer, index, applyNorm(layer.norm1, x, width), angles, tap));
    if (index === model.layers.length - 1) x = x.slice(-width);
    if (layer.mlp) x = add(x, mlp(model, layer, index, x));
  }
  return toLogits(model, x);
}

/** The residual stream to logits: the last LayerNorm and the unembedding. */
export function toLogits(model: Model, x: Numbers, tap: Tap = SILENT): Numbers {
  const normed = applyNorm(model.norm, x, model.shape.d_model);
  tap.see(null, 'final', normed);
  return applyLinear(model.unembed, normed);
}

export function anglesOf(model: Model, nPositions: number): Angles | null {
  return model.nTurning ? ropeAngles(nPositions, model.nTurning, model.shape.rope_base) : null;
}

function embed(model: Model, tokens: readonly number[], tap: Tap): Numbers {
  const { d_model: width } = model.shape;
  const x = new Float32Array(tokens.length * width);
  tokens.forEach((token, position) => x.set(model.embed.subarray(token * width, (token + 1) * width), position * width));
  tap.see(null, 'embed', x);
  if (!model.positions) return x;
  const where = model.positions.slice(0, tokens.length * width);
  tap.see(null, 'pos_embed', where);
  return add(x, where);
}

function attention(model: Model, layer: Layer, index: number, normed: Numbers, angles: Angles | null, tap: Tap): Numbers {
  const { n_heads: nHeads, d_head: width } = model.shape;
  const [queries, keys, values] = (['query', 'key', 'value'] as const).map((part) => applyLinear(layer[part], normed));
  tap.see(index, 'q', queries!);
  tap.see(index, 'k', keys!);
  tap.see(index, 'v', values!);
  if (angles) {
    rotate(queries!, nHeads, width, angles);
    rotate(keys!, nHeads, width, angles);
    tap.see(index, 'rot_q', queries!);
    tap.see(index, 'rot_k', keys!);
  }
  const seen = { keys: keys!, values: values!, normed };
  const attended = attend(model, layer, queries!, normed, 0, seen, { tap, index });
  tap.see(index, 'z', attended.z);
  const mixed = tap.wants(index, 'result')
    ? sumResults(model, layer, index, attended, normed, tap)
    : mix(layer, attended, normed, 0, model);
  tap.see(index, 'attn_out', mixed);
  return mixed;
}

/** Where queries from position `first` on look, and what they bring from there. */
export function attend(
  model: Model,
  layer: Layer,
  queries: Numbers,
  queriesNormed: Numbers,
  first: number,
  seen: Seen,
  watched: { tap: Tap; index: number } | null = null,
): Attended {
  const { n_heads: nHeads, d_head: width, d_model: dModel } = model.shape;
  const inner = nHeads * width;
  const nQueries = queries.length / inner;
  const nKeys = seen.keys.length / inner;
  const pattern = new Float32Array(nHeads * nQueries * nKeys);
  const scale = 1 / Math.sqrt(width);
  for (let query = 0; query < nQueries; query += 1) {
    for (let key = 0; key <= first + query; key += 1) {
      const match = layer.a ? dot(queriesNormed, query * dModel, seen.normed, key * dModel, dModel) : 0;
      for (let head = 0; head < nHeads; head += 1) {
        const score = scale * dot(queries, query * inner + head * width, seen.keys, key * inner + head * width, width);
        pattern[(head * nQueries + query) * nKeys + key] = layer.a ? score + layer.a[head]! * match : score;
      }
    }
  }
  if (watched?.tap.wants(watched.index, 'scores')) seeScores(pattern, nQueries, nKeys, first, watched.tap, watched.index);
  for (let row = 0; row < nHeads * nQueries; row += 1) softmax(pattern, row * nKeys, first + (row % nQueries) + 1);
  watched?.tap.see(watched.index, 'pattern', pattern);
  const z = new Float32Array(nQueries * inner);
  for (let head = 0; head < nHeads; head += 1) {
    for (let query = 0; query < nQueries; query += 1) {
      const [row, place] = [(head * nQueries + query) * nKeys, query * inner + head * width];
      for (let key = 0; key <= first + query; key += 1) {
        addScaled(z, place, seen.values, key * inner + head * width, width, pattern[row + key]!);
      }
    }
  }
  return { z, pattern };
}

/** Scores as they are read elsewhere, hidden keys at −∞. */
function seeScores(scores: Numbers, nQueries: number, nKeys: number, first: number, tap: Tap, index: number): void {
  const hide = (value: number): void => {
    for (let row = 0; row < scores.length / nKeys; row += 1) {
      scores.fill(value, row * nKeys + first + (row % nQueries) + 1, (row + 1) * nKeys);
    }
  };
  hide(-Infinity);
  tap.see(index, 'scores', scores);
  hide(0);
}

/** What all heads add to the residual stream together, [query, d_model]. */
export function mix(layer: Layer, attended: Attended, normed: Numbers, first: number, model: Model): Numbers {
  const mixed = applyLinear(layer.out, attended.z);
  if (!layer.b) return mixed;
  const { d_model: dModel } = model.shape;
  const nQueries = mixed.length / dModel;
  const nKeys = normed.length / dModel;
  for (let query = 0; query < nQueries; query += 1) {
    for (let key = 0; key <= first + query; key += 1) {
      let weight = 0;
      for (let head = 0; head < layer.b.length; head += 1) {
        weight += layer.b[head]! * attended.pattern[(head * nQueries + query) * nKeys + key]!;
      }
      addScaled(mixed, query * dModel, normed, key * dModel, dModel, weight);
    }
  }
  return mixed;
}

/** What each head adds, its identity-scaling term included, and then their sum. */
function sumResults(model: Model, layer: Layer, index: number, attended: Attended, normed: Numbers, tap: Tap): Numbers {
  const { d_model: dModel, n_heads: nHeads, d_head: width } = model.shape;
  const nQueries = normed.length / dModel;
  const result = new Float32Array(nQueries * nHeads * dModel);
  for (let query = 0; query < nQueries; query += 1) {
    for (let head = 0; head < nHeads; head += 1) {
      const place = (query * nHeads + head) * dModel;
      addHead(layer.out, attended.z, query, head, width, result, place);
      for (let key = 0; layer.b && key <= query; key += 1) {
        const weight = layer.b[head]! * attended.pattern[(head * nQueries + query) * nQueries + key]!;
        addScaled(result, place, normed, key * dModel, dModel, weight);
      }
    }
  }
  tap.see(index, 'result', result);
  const total = new Float32Array(nQueries * dModel);
  for (let query = 0; query < nQueries; query += 1) {
    for (let head = 0; head < nHeads; head += 1) {
      addScaled(total, query * dModel, result, (query * nHeads + head) * dModel, dModel, 1);
    }
    if (layer.out.bias) addScaled(total, query * dModel, layer.out.bias, 0, dModel, 1);
  }
  return total;
}

/** result[place…] += z of one head through its part of the output map. */
function addHead(out: Linear, z: Numbers, query: number, head: number, width: number, result: Numbers, place: number): void {
  const from = query * out.nIn + head * width;
  for (let output = 0; output < out.nOut; output += 1) {
    result[place + output]! += dot(out.weight, output * out.nIn + head * width, z, from, width);
  }
}

/** What the MLP adds to a stream that has come through attention. */
export function mlp(model: Model, layer: Layer, index: number, x: Numbers, tap: Tap = SILENT): Numbers {
  if (!layer.mlp) return new Float32Array(x.length);
  const inner = applyLinear(layer.mlp.up, applyNorm(layer.norm2, x, model.shape.d_model));
  tap.see(index, 'pre', inner);
  const { activation } = model;
  for (let neuron = 0; neuron < inner.length; neuron += 1) inner[neuron] = activation(inner[neuron]!);
  tap.see(index, 'post', inner);
  const added = applyLinear(layer.mlp.down, inner);
  tap.see(index, 'mlp_out', added);
  return added;
}
