/** Parts of one checkpoint in another, in the reader's browser: `bindscope.measures.arithmetic.transplanting` on the sums that a copy holds. */
import { labelsOf, pick, type Body } from '../api/body';
import { askAgain } from '../api/render';
import { labelled, makeBody } from './bodies';
import { runToAnswer } from './forward';
import { buildModel, type Model } from './model';
import { argmax } from './outcome';
import { Refusal } from './refusal';
import { formatOf, type OpenedRun, type Runs } from './runs';
import type { Tensor } from './safetensors';
import type { Site } from './sites';
import { placesOf, Recorder, Writer } from './taps';

export interface TransplantQuestion {
  run: string;
  receiver: number;
  donor: number;
  parts: string[];
  n?: number;
  seed?: number;
}

/** The sums of one split with their answers. */
interface Split {
  readonly name: string;
  readonly tokens: readonly (readonly number[])[];
  readonly answers: readonly number[];
}

const Z = 1.959963984540054; // of a 95 % interval
const WILSON = '95 % Wilson interval over sums';

/** Accuracy over (condition: receiver, transplanted, donor; split), with its interval. */
export async function transplant(runs: Runs, question: TransplantQuestion): Promise<Body> {
  const { receiver, donor, n = 200, seed = 0 } = question;
  const run = await runs.find(question.run);
  formatOf(run);
  const stored = await runs.body(run, 'parts.json');
  const names = question.parts.map((name) => findPart(stored, name));
  const again = askAgain('Transplant', { run: run.name, receiver, donor, parts: [question.parts.join(' + ')], n, seed });
  if (n !== stored.provenance.n || seed !== stored.provenance.seed) {
    const held = `${stored.provenance.n} sums of each split, seed ${stored.provenance.seed}`;
    throw new Refusal(`this copy holds ${held}; for others, on your own machine: ${again.command}`, 501);
  }
  const splits = splitsOf(stored);
  const models = [await runs.model(run, receiver), await mixModels(runs, run, receiver, donor, stored, names), await runs.model(run, donor)] as const;
  const sites = sitesOf(stored, names);
  const counts = splits.map((split) => countRight(split, models, sites));
  const hits = [0, 1, 2].flatMap((condition) => counts.map((right) => right[condition]!));
  const row = question.parts.join(' + ');
  const ends = hits.map((right) => wilson(right, n));
  const dims = ['condition', 'split'];
  return makeBody({
    title: 'Parts of another checkpoint',
    run: run.name,
    step: null,
    n,
    seed,
    interval: WILSON,
    note: 'n sums of each split',
    sizes: { condition: 3, split: splits.length },
    coords: {
      condition: labelled(['condition'], ['receiver', 'transplanted', 'donor']),
      split: labelled(['split'], splits.map((split) => split.name)),
    },
    variables: {
      accuracy: labelled(dims, hits.map((right) => right / n), 'fraction'),
      accuracy_low: labelled(dims, ends.map(([low]) => low), 'fraction'),
      accuracy_high: labelled(dims, ends.map(([, high]) => high), 'fraction'),
    },
    attrs: { receiver, donor, parts: row },
    ...again,
  });
}

function findPart(stored: Body, name: string): string {
  if (!labelsOf(stored, 'part').includes(name)) throw new Refusal(`there is no part '${name}'.`);
  return name;
}

function splitsOf(stored: Body): Split[] {
  const width = stored.sizes.position ?? 0;
  return labelsOf(stored, 'split').map((name) => {
    const flat = pick(stored, 'tokens', { split: name }).map(Number);
    const tokens = Array.from({ length: flat.length / width }, (_, sum) => flat.slice(sum * width, (sum + 1) * width));
    return { name: String(name), tokens, answers: pick(stored, 'answer', { split: name }).map(Number) };
  });
}

/** The receiver with the donor's rows in the regions of these parts. */
async function mixModels(runs: Runs, run: OpenedRun, receiver: number, donor: number, stored: Body, names: readonly string[]): Promise<Model> {
  const [own, other] = [await runs.tensors(run, receiver), await runs.tensors(run, donor)];
  const column = (name: string): unknown[] => stored.variables[name]?.values ?? [];
  column('region_part').forEach((part, index) => {
    if (!names.includes(String(part))) return;
    const tensor = String(column('region_tensor')[index]);
    const [first, stop] = [Number(column('region_first')[index]), Number(column('region_stop')[index])];
    for (const name of tensor === '*' ? own.keys() : [tensor]) copyRows(own.get(name), other.get(name), first, stop);
  });
  return buildModel(run.shape, own);
}

function copyRows(to: Tensor | undefined, from: Tensor | undefined, first: number, stop: number): void {
  if (!to || !from) throw new Refusal('these weights are not of this model.');
  const width = to.values.length / (to.shape[0] ?? 1);
  const end = stop < 0 ? to.values.length : stop * width;
  to.values.set(from.values.subarray(first * width, end), first * width);
}

/** The sites where the donor's attention is written into the receiver's run. */
function sitesOf(stored: Body, names: readonly string[]): Site[] {
  const column = (name: string): unknown[] => stored.variables[name]?.values ?? [];
  return column('look_part').flatMap((part, index): Site[] => {
    if (!names.includes(String(part))) return [];
    const positions = String(column('look_positions')[index]);
    return [{ name: 'pattern', layer: Number(column('look_layer')[index]), head: null, positions: positions ? positions.split(',').map(Number) : null }];
  });
}

/** How many sums the receiver, the mixed model and the donor answer right; the mixed model with the donor's attention at these sites. */
function countRight({ tokens, answers }: Split, [receiver, mixed, donor]: readonly [Model, Model, Model], sites: readonly Site[]): number[] {
  const hits = [0, 0, 0];
  tokens.forEach((row, sum) => {
    const recorder = new Recorder(placesOf(sites));
    const given = runToAnswer(donor, row, recorder);
    const tap = sites.length ? new Writer(sites, mixed.shape, row.length, recorder.kept) : undefined;
    const said = [runToAnswer(receiver, row), runToAnswer(mixed, row, tap), given];
    said.forEach((logits, condition) => (hits[condition]! += Number(argmax(logits) === answers[sum])));
  });
  return hits;
}

/** Wilson's interval for a fraction. */
export function wilson(hits: number, n: number): [number, number] {
  const fraction = hits / n;
  const scale = 1 + Z ** 2 / n;
  const centre = (fraction + Z ** 2 / (2 * n)) / scale;
  const half = (Z / scale) * Math.sqrt((fraction * (1 - fraction)) / n + Z ** 2 / (4 * n ** 2));
  return [hits === 0 ? 0 : Math.max(0, centre - half), hits === n ? 1 : Math.min(1, centre + half)];
}
