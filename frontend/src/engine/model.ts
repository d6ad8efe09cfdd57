/** A checkpoint as the browser runs it: its shape and its weights, read from the same files as the server's. */
import { ACTIVATIONS, type Activation } from './activations';
import { EPSILON, type Linear, type Norm, type Numbers } from './arithmetic';
import { Refusal } from './refusal';
import type { Tensor } from './safetensors';

/** The shape of a transformer, as a run's settings write it. */
export interface Shape {
  d_vocab: number;
  n_positions: number;
  d_out: number | null;
  n_layers: number;
  n_heads: number;
  d_model: number;
  d_head: number;
  d_mlp: number;
  causal: boolean;
  positions: 'rope' | 'learned' | 'normal' | 'none';
  rope_base: number;
  rope_fraction: number;
  norm: 'layer' | 'rms' | 'none';
  norm_epsilon?: number;
  parallel?: boolean;
  gated?: boolean;
  n_kv_heads?: number | null;
  bias: boolean;
  activation: string;
  mlp_layers: number[] | null;
  tied: boolean;
  identity_qk: boolean;
  identity_vo: boolean;
  identity_gain: number;
}

export interface Layer {
  readonly norm1: Norm | null;
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly out: Linear;
  readonly a: Numbers | null; // [head]: what x·xᵀ is multiplied by in the scores, gain and scale included
  readonly b: Numbers | null; // [head]: what pattern·x is multiplied by, gain included
  readonly norm2: Norm | null;
  readonly mlp: { readonly up: Linear; readonly down: Linear } | null;
}

export interface Model {
  readonly shape: Shape;
  readonly nOutputs: number;
  readonly nTurning: number; // dimensions of each head that turn with the position; 0 where none do
  readonly embed: Numbers; // [vocab, d_model]
  readonly positions: Numbers | null; // [position, d_model]
  readonly layers: readonly Layer[];
  readonly norm: Norm | null;
  readonly unembed: Linear;
  readonly activation: Activation;
}

/** What the browser runs; a setting that a run's file does not name has its default. */
const KNOWN: Record<string, readonly unknown[]> = {
  causal: [true],
  parallel: [false, undefined],
  gated: [false, undefined],
  n_kv_heads: [null, undefined],
  norm_epsilon: [EPSILON, undefined],
  positions: ['rope', 'learned', 'normal', 'none'],
  norm: ['layer', 'none'],
  activation: Object.keys(ACTIVATIONS),
};

/** The model of a checkpoint; a kind that the browser does not know is refused with a sentence. */
export function buildModel(shape: Shape, tensors: Map<string, Tensor>): Model {
  for (const [name, values] of Object.entries(KNOWN)) {
    const given = shape[name as keyof Shape];
    if (!values.includes(given)) throw new Refusal(`the browser cannot run a model with ${name} = ${String(given)}.`);
  }
  const read = new Reader(shape, tensors);
  return {
    shape,
    nOutputs: shape.d_out ?? shape.d_vocab,
    nTurning: shape.positions === 'rope' ? Math.floor(shape.d_head * shape.rope_fraction) : 0,
    embed: read.numbers('embed.weight', shape.d_vocab * shape.d_model),
    positions: ['learned', 'normal'].includes(shape.positions)
      ? read.numbers('pos_embed', shape.n_positions * shape.d_model)
      : null,
    layers: Array.from({ length: shape.n_layers }, (_, index) => read.layer(index)),
    norm: read.norm('norm'),
    unembed: read.unembedding(),
    activation: ACTIVATIONS[shape.activation]!,
  };
}

export function hasMlp(shape: Shape, layer: number): boolean {
  return shape.mlp_layers === null || shape.mlp_layers.includes(layer);
}

class Reader {
  constructor(
    readonly shape: Shape,
    readonly tensors: Map<string, Tensor>,
  ) {}

  numbers(name: string, size: number): Numbers {
    const found = this.tensors.get(name)?.values;
    if (found?.length !== size) throw new Refusal(`these weights are not of this model: '${name}' should be ${size} numbers.`);
    return found;
  }

  layer(index: number): Layer {
    const { shape } = this;
    const { n_heads: nHeads, d_model: dModel } = shape;
    const inner = nHeads * shape.d_head;
    const place = `blocks.${index}`;
    const qkv = this.linear(`${place}.attention.qkv`, 3 * inner, dModel);
    const [query, key, value] = [0, 1, 2].map((part) => takeRows(qkv, part * inner, inner)) as [Linear, Linear, Linear];
    const scaled = (name: string, scale: number): Numbers =>
      this.numbers(`${place}.attention.${name}`, nHeads).map((factor) => factor * scale);
    const mlp = hasMlp(shape, index);
    return {
      norm1: this.norm(`${place}.norm1`),
      query,
      key,
      value,
      out: this.linear(`${place}.attention.out`, dModel, inner),
      a: shape.identity_qk ? scaled('identity_a', shape.identity_gain / Math.sqrt(dModel)) : null,
      b: shape.identity_vo ? scaled('identity_b', shape.identity_gain) : null,
      norm2: mlp ? this.norm(`${place}.norm2`) : null,
      mlp: mlp
        ? {
            up: this.linear(`${place}.mlp.up`, shape.d_mlp, dModel),
            down: this.linear(`${place}.mlp.down`, dModel, shape.d_mlp),
          }
        : null,
    };
  }

  linear(name: string, nOut: number, nIn: number): Linear {
    const weight = this.numbers(`${name}.weight`, nOut * nIn);
    return { nOut, nIn, weight, bias: this.shape.bias ? this.numbers(`${name}.bias`, nOut) : null };
  }

  norm(name: string): Norm | null {
    if (this.shape.norm === 'none') return null;
    const [weight, bias] = ['weight', 'bias'].map((part) => this.numbers(`${name}.${part}`, this.shape.d_model));
    return { weight: weight!, bias: bias! };
  }

  unembedding(): Linear {
    const { d_model: nIn, tied } = this.shape;
    const nOut = this.shape.d_out ?? this.shape.d_vocab;
    return { nOut, nIn, weight: this.numbers(tied ? 'embed.weight' : 'unembed.weight', nOut * nIn), bias: null };
  }
}

/** Some of a map's outputs, sharing its weights. */
function takeRows(map: Linear, first: number, nOut: number): Linear {
  const weight = map.weight.subarray(first * map.nIn, (first + nOut) * map.nIn);
  return { nOut, nIn: map.nIn, weight, bias: map.bias?.subarray(first, first + nOut) ?? null };
}
