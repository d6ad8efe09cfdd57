/** Runs that start in the middle of another: a change in the residual stream at position p reaches only what comes after it.

    const kept = keepRun(model, tokens);
    const logits = resumeRun(kept, 2, 14, streams); // streams [position from 14 on, d_model] entering layer 2 */
import { add, applyLinear, applyNorm, rotate, type Angles, type Linear, type Numbers } from './arithmetic';
import { anglesOf, attend, mix, mlp, runModel, toLogits } from './forward';
import { hasMlp, type Model } from './model';
import type { SiteName } from './sites';
import { keyOf, Recorder } from './taps';

/** What a run leaves for others, layer by layer, [position, …] each. */
export interface KeptRun {
  readonly model: Model;
  readonly nPositions: number;
  readonly angles: Angles | null;
  readonly logits: Numbers; // [output] at the last position
  readonly layers: readonly KeptLayer[];
}

export interface KeptLayer {
  readonly stream: Numbers; // entering the layer
  readonly normed: Numbers;
  readonly queries: Numbers; // rotated, as the keys
  readonly keys: Numbers;
  readonly values: Numbers;
  readonly middle: Numbers; // between attention and MLP; without an MLP what leaves the layer
  readonly results: Numbers; // [position, head, d_model]: what each head adds
  readonly added: Numbers | null; // what the MLP adds
}

export function keepRun(model: Model, tokens: readonly number[]): KeptRun {
  const { shape } = model;
  const turned = model.nTurning > 0;
  const names: SiteName[] = ['resid_pre', turned ? 'rot_q' : 'q', turned ? 'rot_k' : 'k', 'v', 'result'];
  const wanted = new Set<string>();
  for (let layer = 0; layer < shape.n_layers; layer += 1) {
    const middle: SiteName[] = hasMlp(shape, layer) ? ['resid_mid', 'mlp_out'] : ['resid_post'];
    for (const name of [...names, ...middle]) wanted.add(keyOf(layer, name));
  }
  const recorder = new Recorder(wanted);
  const logits = runModel(model, tokens, recorder);
  const layers = model.layers.map(({ norm1, mlp: own }, layer) => {
    const [stream, queries, keys, values, results] = names.map((name) => recorder.kept.get(keyOf(layer, name))!);
    const middle = recorder.kept.get(keyOf(layer, own ? 'resid_mid' : 'resid_post'))!;
    const added = recorder.kept.get(keyOf(layer, 'mlp_out')) ?? null;
    const normed = applyNorm(norm1, stream!, shape.d_model);
    return { stream: stream!, normed, queries: queries!, keys: keys!, values: values!, middle, results: results!, added };
  });
  const nPositions = tokens.length;
  const last = logits.slice((nPositions - 1) * model.nOutputs);
  return { model, nPositions, angles: anglesOf(model, nPositions), logits: last, layers };
}

/** Logits [output] at the last position when `stream`, of the positions from `first` on, enters `layer`.

With `alone` only position `first` differs from the cached run, which saves the projections of all others there. */
export function resumeRun(kept: KeptRun, layer: number, first: number, stream: Numbers, alone = false): Numbers {
  const { n_layers: nLayers, d_model: dModel } = kept.model.shape;
  let x = stream;
  for (let index = layer; index < nLayers; index += 1) x = passLayer(kept, index, first, x, alone && index === layer);
  return toLogits(kept.model, x.subarray(x.length - dModel));
}

/** What leaves a layer; of the last one only the last position, as nothing else is asked for. */
function passLayer(kept: KeptRun, index: number, first: number, x: Numbers, alone: boolean): Numbers {
  const { model } = kept;
  const { d_model: dModel, n_heads: nHeads, d_head: width, n_layers: nLayers } = model.shape;
  const layer = model.layers[index]!;
  const old = kept.layers[index]!;
  const asked = index === nLayers - 1 ? kept.nPositions - 1 : first; // queries from here on
  const changed = alone ? x.subarray(0, dModel) : x;
  const fresh = applyNorm(layer.norm1, changed, dModel);
  const normed = replaced(old.normed, fresh, first * dModel);
  const inner = nHeads * width;
  const project = (map: Linear, y: Numbers, from: number, turned: boolean): Numbers => {
    const projected = applyLinear(map, y);
    if (turned && kept.angles) rotate(projected, nHeads, width, kept.angles, from);
    return projected;
  };
  const keys = replaced(old.keys, project(layer.key, fresh, first, true), first * inner);
  const values = replaced(old.values, project(layer.value, fresh, first, false), first * inner);
  const queries = alone
    ? replaced(old.queries, project(layer.query, fresh, first, true), first * inner).subarray(asked * inner)
    : project(layer.query, normed.subarray(asked * dModel), asked, true);
  const attended = attend(model, layer, queries, normed.subarray(asked * dModel), asked, { keys, values, normed });
  const rows = x.subarray((asked - first) * dModel);
  const middle = add(rows, mix(layer, attended, normed, asked, model));
  return layer.mlp ? add(middle, mlp(model, layer, index, middle)) : middle;
}

/** A copy with other numbers from an index on. */
function replaced(values: Numbers, others: Numbers, at: number): Numbers {
  const copy = values.slice();
  copy.set(others, at);
  return copy;
}
