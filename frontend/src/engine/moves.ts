/** Every head at every position of the chain in the reader's browser, as `bindscope.measures.binding.moves`: the value, and a
pointer for each reference that could name another variable. Ablations need means over other programs, which a copy has not. */
import type { Body } from '../api/body';
import type { Part } from '../api/client';
import { askAgain, oneLine } from '../api/render';
import { buildProgram, DIGITS, positionOf, type Program } from '../program/program';
import { add, type Numbers } from './arithmetic';
import { labelled, makeBody } from './bodies';
import { mlp, runModel } from './forward';
import type { Model } from './model';
import { argmax } from './outcome';
import { readPair, type PairQuestion } from './patches';
import { Refusal } from './refusal';
import { keepRun, resumeRun, type KeptRun } from './resume';
import { tokenIds, type Runs } from './runs';
import { keyOf, Recorder } from './taps';

export interface MovesQuestion extends PairQuestion {
  step: number;
}

interface Moved {
  readonly what: string;
  readonly source: Program;
  readonly target: number; // the answer that says it was moved
}
type Effects = Record<'held' | 'together' | 'head', (number | null)[]>;

/** The body with all cells missing, then its parts, one thing that moves after another. */
export async function* moves(runs: Runs, question: MovesQuestion): AsyncGenerator<Body | Part> {
  const { run, base, source, texts } = await readPair(runs, question);
  if (String(base.chain) !== String(source.chain)) {
    throw new Refusal('the two programs follow different lines; change the constant at the root alone.');
  }
  const model = await runs.model(run, question.step);
  const moved = [{ what: 'value', source, target: source.answer }, ...referencesOf(base).flatMap((reference) => pointElsewhere(base, reference) ?? [])];
  const path = pathOf(base);
  const { n_layers: nLayers, n_heads: nHeads } = model.shape;
  const [program, counterfactual] = texts.map(oneLine);
  const sizes = { what: moved.length, layer: nLayers, position: path.length, index: nHeads, from: path.length, ablated_at: path.length + 1 };
  const missing = (...dims: (keyof typeof sizes)[]) => labelled(dims, new Array<null>(dims.reduce((product, dim) => product * sizes[dim], 1)).fill(null));
  const names = path.map(({ name }) => name);
  const along = (dim: string, values: (string | number)[]) => labelled([dim], values);
  const attended = attendedOf(model, base, path.map(({ position }) => position));
  yield makeBody({
    title: 'What moves where',
    run: run.name,
    step: question.step,
    note: `one typed pair, of depth ${base.depth}`,
    sizes,
    coords: {
      what: along('what', moved.map(({ what }) => what)),
      layer: along('layer', Array.from({ length: nLayers }, (_, layer) => layer)),
      index: along('index', Array.from({ length: nHeads }, (_, head) => head)),
      position: along('position', names),
      from: along('from', names),
      ablated_at: along('ablated_at', ['everywhere', ...names]),
      spelled: labelled(['position'], path.map(({ position }) => base.text[position] ?? '')),
    },
    variables: {
      held: missing('what', 'layer', 'position'),
      together: missing('what', 'layer', 'position'),
      head: missing('what', 'layer', 'index', 'position'),
      attended: missing('layer', 'index', 'position', 'from'),
      lost: missing('layer', 'index', 'ablated_at'),
    },
    attrs: { pointers: moved.slice(1).map(({ what, source }) => `${what}: ${oneLine(source.text)}`).join('\n') },
    ...askAgain('Moves', { run: run.name, program, counterfactual, direction: question.direction ?? 'noising', step: question.step }),
  });
  yield { at: 0, variables: { attended } };
  const kept = keepRun(model, tokenIds(base));
  for (const [index, { source, target }] of moved.entries()) {
    const found = effectsOf(kept, keepRun(model, tokenIds(source)), target, path.map(({ position }) => position));
    for (const [name, values] of Object.entries(found)) yield { at: index * values.length, variables: { [name]: values } };
  }
}

/** The right-hand sides of the chain from its root on, the query and the colon. */
function pathOf(program: Program): { name: string; position: number }[] {
  const lines = [...program.chain].reverse().map((line, index) => ({ name: `rhs ${index + 1}`, position: positionOf(program, 'rhs', line) }));
  return [...lines, { name: 'query', position: positionOf(program, 'query') }, { name: 'colon', position: positionOf(program, 'colon') }];
}

function referencesOf({ depth }: Program): string[] {
  return [...Array.from({ length: depth - 1 }, (_, index) => `rhs ${index + 2}`), 'query'];
}

/** Another name at a reference, and another constant at that name's root; as `bindscope.tasks.binding.pointers.point_elsewhere`. */
function pointElsewhere(program: Program, reference: string): Moved | null {
  const hop = referencesOf(program).indexOf(reference) + 2;
  const line = hop > program.depth ? program.nLines + 1 : [...program.chain].reverse()[hop - 1]!;
  const held = new Map<string, number>();
  for (let number = 1; number < line; number += 1) held.set(program.assignments[number - 1]!.variable, number);
  const others = [...held.values()].filter((number) => program.values[number - 1] !== program.answer);
  const distance = (number: number): [number, number] => [Math.abs(program.depths[number - 1]! - (hop - 1)), line - number];
  const other = others.sort((one, another) => distance(one)[0] - distance(another)[0] || distance(one)[1] - distance(another)[1])[0];
  if (other === undefined) return null;
  const target = program.values[other - 1]!;
  const digit = [...DIGITS].find((each) => Number(each) !== program.answer && Number(each) !== target)!;
  const name = program.assignments[other - 1]!.variable;
  const assignments = [...program.assignments];
  if (line <= program.nLines) assignments[line - 1] = { ...assignments[line - 1]!, source: name };
  let root = other;
  while (program.references[root - 1] != null) root = program.references[root - 1]!;
  assignments[root - 1] = { ...assignments[root - 1]!, source: digit };
  return { what: reference, source: buildProgram(assignments, line <= program.nLines ? program.query : name), target };
}

/** held and together [layer, position], head [layer, index, position]: how far the target's margin over the best other came. */
function effectsOf(base: KeptRun, source: KeptRun, target: number, positions: number[]): Effects {
  const { n_heads: nHeads, d_model: dModel, n_layers: nLayers } = base.model.shape;
  const before = marginOf(base.logits, target);
  const effect = (logits: Numbers): number | null => (before < 0 ? rounded((marginOf(logits, target) - before) / (-2 * before)) : null);
  const found: Effects = { held: [], together: [], head: [] };
  for (let layer = 0; layer < nLayers; layer += 1) {
    const [own, other] = [base.layers[layer]!, source.layers[layer]!];
    const brought = (position: number, heads: number[]): number | null => {
      const middle = own.middle.slice(position * dModel);
      for (const head of heads) {
        const at = (position * nHeads + head) * dModel;
        for (let index = 0; index < dModel; index += 1) middle[index]! += other.results[at + index]! - own.results[at + index]!;
      }
      const parts = base.model.layers[layer]!;
      return effect(resumeRun(base, layer + 1, position, parts.mlp ? add(middle, mlp(base.model, parts, layer, middle)) : middle));
    };
    const all = Array.from({ length: nHeads }, (_, head) => head);
    for (const position of positions) {
      const stream = own.stream.slice(position * dModel);
      stream.set(other.stream.subarray(position * dModel, (position + 1) * dModel));
      found.held.push(effect(resumeRun(base, layer, position, stream, true)));
      found.together.push(brought(position, all));
    }
    for (const head of all) for (const position of positions) found.head.push(brought(position, [head]));
  }
  return found;
}

function marginOf(logits: Numbers, target: number): number {
  const others = logits.slice();
  others[target] = -Infinity;
  return logits[target]! - others[argmax(others)]!;
}

const rounded = (value: number): number => Math.round(value * 1e4) / 1e4;

/** Attention [layer, index, position, from] between positions of the chain. */
function attendedOf(model: Model, program: Program, positions: number[]): number[] {
  const keys = model.layers.map((_, layer) => keyOf(layer, 'pattern'));
  const recorder = new Recorder(new Set(keys));
  runModel(model, tokenIds(program), recorder);
  const n = program.text.length;
  return keys.flatMap((key) => {
    const pattern = recorder.kept.get(key)!;
    return Array.from({ length: model.shape.n_heads }, (_, head) => head).flatMap((head) =>
      positions.flatMap((query) => positions.map((from) => rounded(pattern[(head * n + query) * n + from]!))),
    );
  });
}
