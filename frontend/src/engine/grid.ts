/** The cells of a patch grid, each as if the model ran again with that one change. */
import { add, type Numbers } from './arithmetic';
import { mlp } from './forward';
import type { Model } from './model';
import { keepRun, resumeRun, type KeptRun } from './resume';

export type Grid = 'residual' | 'heads' | 'mlps';

/** The two runs that a grid mixes. */
export interface Sides {
  readonly model: Model;
  readonly sourceModel: Model;
  readonly base: readonly number[]; // tokens
  readonly source: readonly number[];
}

/** Neighbouring cells from index `at` on, the last axis running fastest: logits [output] each. */
export interface Cells {
  readonly at: number;
  readonly logits: readonly Numbers[];
  readonly base: Numbers; // logits of the unchanged runs
  readonly source: Numbers;
}

/** Residual (position, layer) position by position; heads (layer, head) and MLPs (layer) layer by layer. */
export function* gridCells(sides: Sides, grid: Grid): Generator<Cells> {
  const base = keepRun(sides.model, sides.base);
  const source = keepRun(sides.sourceModel, sides.source);
  const first = sides.model === sides.sourceModel ? firstDifference(sides.base, sides.source) : 0;
  const change = { residual: changeStream, heads: changeHeads, mlps: changeMlps }[grid];
  for (const { at, logits } of change(base, source, first)) {
    yield { at, logits, base: base.logits, source: source.logits };
  }
}

type Changed = Generator<{ at: number; logits: Numbers[] }>;

/** The residual stream entering each layer, taken from the source at one position after another. */
function* changeStream(base: KeptRun, source: KeptRun, first: number): Changed {
  const { n_layers: nLayers, d_model: dModel } = base.model.shape;
  for (let position = 0; position < base.nPositions; position += 1) {
    const logits = base.layers.map((kept, layer) => {
      const stream = kept.stream.slice(position * dModel);
      const taken = source.layers[layer]!.stream.subarray(position * dModel, (position + 1) * dModel);
      if (position < first || taken.every((number, index) => number === stream[index])) return base.logits; // no change
      stream.set(taken);
      return resumeRun(base, layer, position, stream, true);
    });
    yield { at: position * nLayers, logits };
  }
}

/** All that one head adds, its identity-scaling term included, taken from the source at every position. */
function* changeHeads(base: KeptRun, source: KeptRun, first: number): Changed {
  const { n_heads: nHeads, d_model: dModel } = base.model.shape;
  for (const [layer, kept] of base.layers.entries()) {
    const other = source.layers[layer]!.results;
    const logits = Array.from({ length: nHeads }, (_, head) => {
      const middle = kept.middle.slice(first * dModel);
      for (let index = 0; index < middle.length; index += 1) {
        const position = first + Math.floor(index / dModel);
        const place = (position * nHeads + head) * dModel + (index % dModel);
        middle[index]! += other[place]! - kept.results[place]!;
      }
      const own = base.model.layers[layer]!;
      return resumeRun(base, layer + 1, first, add(middle, mlp(base.model, own, layer, middle)));
    });
    yield { at: layer * nHeads, logits };
  }
}

/** All that an MLP adds, taken from the source at every position. */
function* changeMlps(base: KeptRun, source: KeptRun, first: number): Changed {
  const { d_model: dModel } = base.model.shape;
  let at = 0;
  for (const [layer, kept] of base.layers.entries()) {
    const added = source.layers[layer]!.added;
    if (!added) continue;
    const stream = add(kept.middle.subarray(first * dModel), added.subarray(first * dModel));
    yield { at, logits: [resumeRun(base, layer + 1, first, stream)] };
    at += 1;
  }
}

function firstDifference(base: readonly number[], source: readonly number[]): number {
  return base.findIndex((token, position) => token !== source[position]);
}
