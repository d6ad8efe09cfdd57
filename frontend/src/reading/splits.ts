/** The nine splits of sums: how many variables, and what is new in them. */
import { labelsOf, numbers, pick, type Body } from '../api/body';
import type { Band, Series } from '../charts/types';
import { curves, stepsOf, wordsOf } from './curves';

export const KINDS: Record<string, { title: string; short: string; colour: string }> = {
  tr: { title: 'as in training', short: 'as trained', colour: '#0072b2' },
  add: { title: 'a new pair of numbers', short: 'new pair', colour: '#d55e00' },
  var: { title: 'in a new position', short: 'moved', colour: '#009e73' },
  var1: { title: 'one in a new position', short: 'one moved', colour: '#009e73' },
  var2: { title: 'both in new positions', short: 'both moved', colour: '#cc79a7' },
};
export const COUNTS = ['no variable', 'one variable', 'two variables'] as const;
export const SPLITS = ['0tr', '0add', '1tr', '1add', '1var', '2tr', '2add', '2var1', '2var2'] as const;

/** The code of a split in words: `describeSplit('2var1').title` is 'two variables: one in a new position', its short form '2 variables, one moved'. */
export function describeSplit(name: string): { count: number; kind: string; title: string; short: string } {
  const [count, kind] = [Number(name[0]), name.slice(1)];
  const words = KINDS[kind];
  if (!words || !COUNTS[count]) return { count, kind, title: wordsOf(name), short: wordsOf(name) };
  return { count, kind, title: `${COUNTS[count]}: ${words.title}`, short: `${count} variable${count === 1 ? '' : 's'}, ${words.short}` };
}

/** Accuracy over training of the splits with so many variables; of all of them when it is left out. */
export function splitCurves(body: Body, count?: number): Series[] {
  return curves(body, 'split_accuracy', 'split')
    .map((series) => ({ series, ...describeSplit(series.name) }))
    .filter((split) => count === undefined || split.count === count)
    .map(({ series, kind, title }) => ({ ...series, name: count === undefined ? title : (KINDS[kind]?.title ?? title), colour: KINDS[kind]?.colour }));
}

/** Held-out pairs of one split in two: those whose swap was trained, and, dashed, those held out in both orders. */
export function halfCurves(body: Body, count: number): Series[] {
  const split = `${count}add`;
  return labelsOf(body, 'half').map((half) => ({
    name: half === 'swap_seen' ? 'swap seen' : 'both held out',
    x: stepsOf(body),
    y: numbers(body, 'half_accuracy', { split, half }),
    colour: half === 'swap_seen' ? '#0072b2' : '#d55e00',
    dashed: half !== 'swap_seen',
  }));
}

/** A jump of several splits between two evaluations. */
export interface Spike {
  number: number;
  before: number;
  after: number;
  size: number; // by how much the one that jumps most does
  splits: string; // those that jump
  published: number; // 1 or 2: the first or the second of the two that the paper tells of; 0: another
}

export function spikesOf(body: Body): Spike[] {
  if (!body.sizes.spike) return [];
  return labelsOf(body, 'spike').map((spike) => ({
    number: Number(spike),
    before: Number(pick(body, 'spike_before', { spike })[0]),
    after: Number(pick(body, 'spike_after', { spike })[0]),
    size: Number(pick(body, 'spike_size', { spike })[0]),
    splits: String(pick(body, 'spike_splits', { spike })[0] ?? ''),
    published: body.variables.spike_published ? Number(pick(body, 'spike_published', { spike })[0]) : 0,
  }));
}

/** The spikes to show at once, those that the paper tells of, and the others; all at once where it tells of none. */
export function sortSpikes(spikes: readonly Spike[]): { first: Spike[]; others: Spike[] } {
  const first = spikes.filter(({ published }) => published > 0);
  return first.length ? { first, others: spikes.filter(({ published }) => published === 0) } : { first: [...spikes], others: [] };
}

/** Spikes as bands behind curves, the paper's two strong. */
export function spikeBands(spikes: readonly Spike[]): Band[] {
  const { others } = sortSpikes(spikes);
  return spikes.map((spike) => ({ name: `spike ${spike.number}`, from: spike.before, to: spike.after, weight: others.includes(spike) ? 'faint' : 'strong' }));
}

/** What the paper says of its two spikes, by the number that it gives them. */
export const PUBLISHED: Record<number, string> = {
  1: 'The paper’s first spike: variables that stand where training shows them are looked up.',
  2: 'The paper’s second spike: the last variable that still failed in a new position is looked up there too.',
};
