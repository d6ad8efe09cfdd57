/** Parts of one checkpoint in another: what can be chosen, and what came of it. */
import { labelsOf, number, pick, type Body } from '../../api/body';
import type { Bar } from '../../charts/types';
import { describeSplit, sortSpikes, type Spike } from '../../reading/splits';

export interface Part {
  name: string;
  meaning: string;
}

/** Parts in groups, single variables and positions behind the others. */
export function partGroups(body: Body): { title: string; parts: Part[] }[] {
  const parts = labelsOf(body, 'part').map((name) => ({ name: String(name), meaning: String(pick(body, 'meaning', { part: name })[0] ?? ''), kind: String(pick(body, 'kind', { part: name })[0] ?? '') }));
  const groupOf = (name: string, kind: string): string => {
    if (kind === 'pattern') return 'where it attends';
    if (/^variable ./.test(name)) return 'single variables';
    if (/^position \d/.test(name)) return 'single positions';
    return 'weights';
  };
  const titles = ['weights', 'where it attends', 'single variables', 'single positions'];
  return titles
    .map((title) => ({ title, parts: parts.filter(({ name, kind }) => name !== 'nothing' && groupOf(name, kind) === title).map(({ name, meaning }) => ({ name, meaning })) }))
    .filter(({ parts }) => parts.length);
}

export const CONDITIONS = ['receiver', 'transplanted', 'donor'] as const;
export type Condition = (typeof CONDITIONS)[number];

/** A bar for each split in one condition, the receiver's accuracy as a tick beside the others. */
export function splitBars(body: Body, condition: Condition): Bar[] {
  return labelsOf(body, 'split').map((split) => {
    const at = (name: string, of: Condition = condition): number | null => number(body, name, { condition: of, split });
    return {
      label: describeSplit(String(split)).short,
      value: at('accuracy'),
      low: at('accuracy_low'),
      high: at('accuracy_high'),
      colour: condition === 'transplanted' ? 'var(--systematic)' : 'var(--random)',
      ...(condition === 'receiver' ? {} : { reference: at('accuracy', 'receiver') }),
    };
  });
}

/** What the parts did, split by split where receiver and donor differ: `Of the way from the receiver's accuracy up to the donor's: 1 variable, new pair 95 %.` */
export function tellTransplant(body: Body, least = 0.1): string {
  const percent = (fraction: number): string => `${Math.round(100 * fraction)} %`.replace('-', '−');
  const told = labelsOf(body, 'split').flatMap((split) => {
    const [before, after, goal] = CONDITIONS.map((condition) => number(body, 'accuracy', { condition, split }) ?? 0) as [number, number, number];
    return Math.abs(goal - before) < least ? [] : [{ better: goal > before, words: `${describeSplit(String(split)).short} ${percent((after - before) / (goal - before))}` }];
  });
  const list = (better: boolean): string => told.filter((one) => one.better === better).map(({ words }) => words).join('; ');
  if (!told.length) return `Receiver and donor differ by less than ${percent(least)} in every split: there is no way to go.`;
  const [up, down] = [list(true), list(false)];
  return [up && `Of the way from the receiver's accuracy up to the donor's: ${up}.`, down && `Where the donor is worse, of the way down: ${down}.`].filter(Boolean).join(' ');
}

/** Receiver and donor until the reader chooses: the pins, else the two sides of the paper's first spike, else the ends of the run. */
export function usualEnds(steps: readonly number[], spikes: readonly Spike[], a: number | null, b: number | null, near: (step: number) => number): { receiver: number; donor: number } {
  const [spike] = sortSpikes(spikes).first;
  return {
    receiver: near(a ?? spike?.before ?? steps[0] ?? 0),
    donor: near(b ?? spike?.after ?? steps.at(-1) ?? 0),
  };
}

