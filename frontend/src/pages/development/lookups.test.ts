import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { accountBars, accountCurves, answeredCurves, featureCurves, findingAt, identifierCurves, lookbackCurves } from './lookups';

const labelled = (dims: string[], values: (number | null)[]) => ({ dims, values, units: 'fraction' });
const coordinate = (name: string, values: (number | string)[]) => ({ dims: [name], values, units: null });
const body = (sizes: Record<string, number>, coords: Record<string, (number | string)[]>, variables: Record<string, ReturnType<typeof labelled>>): Body =>
  ({
    title: 'made', sizes, variables,
    coords: Object.fromEntries(Object.entries(coords).map(([name, values]) => [name, coordinate(name, values)])),
  }) as unknown as Body; // prettier-ignore

const accounts = ['positional', 'lexical', 'reflexive', 'early', 'unchanged', 'other'];
const mixture = body(
  { step: 2, layer: 2, position: 1, account: 6 },
  { step: [0, 100], layer: [0, 1], position: ['end'], account: accounts },
  { weight: labelled(['step', 'layer', 'position', 'account'], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0.5, 0, 0.5, 0, 1, 0, 0, 0, 0, 0.25, 0.25, 0.5, 0, 0, 0]) },
);

describe('accounts of a lookup', () => {
  it('are curves over the steps at one layer, the heuristic first', () => {
    const found = accountCurves(mixture, 0);
    expect(found.map(({ name, y }) => [name, y])).toEqual([
      ['early', [1, 0]],
      ['lexical', [0, 1]],
      ['positional', [0, 0]],
      ['reflexive', [0, 0]],
    ]);
  });

  it('add up to 1 in every layer of a step', () => {
    const bars = accountBars(mixture, 100, 'end');
    expect(bars.map(({ layer }) => layer)).toEqual(['L0', 'end']);
    for (const { parts } of bars) expect(parts.reduce((sum, { weight }) => sum + weight, 0)).toBe(1);
  });
});

describe('identifiers and lookbacks', () => {
  const sizes = { step: 1, intervention: 3, part: 1, layer: 2 };
  const coords = { step: [0], intervention: ['exchanged', 'mean', 'random vector'], part: ['name'], layer: [0, 1] };
  const dims = ['step', 'intervention', 'part', 'layer'];
  const made = body(sizes, coords, { swapped: labelled(dims, [0, 1, 2, 3, 4, 5]), kept: labelled(dims, [6, 7, 8, 9, 10, 11]) });

  it('read what is kept of an exchange, and what is swapped by a mean beside its control', () => {
    expect(identifierCurves(made, 'name', 'exchanged').map(({ y }) => y[0])).toEqual([6, 7]);
    const mean = identifierCurves(made, 'name', 'mean');
    expect(mean.map(({ y, dashed }) => [y[0], dashed ?? false])).toEqual([[2, false], [4, true], [3, false], [5, true]]); // prettier-ignore
  });

  it('have a curve for each layer', () => {
    const look = body({ step: 1, layer: 2, moved: 1 }, { step: [0], layer: [0, 1], moved: ['both'] }, { binding: labelled(['step', 'layer', 'moved'], [0, 1]) });
    expect(lookbackCurves(look, 'binding', { moved: 'both' }).map(({ name, y }) => [name, y[0]])).toEqual([['L0', 0], ['L1', 1]]); // prettier-ignore
  });
});

describe('features that checkpoints share', () => {
  it('are a curve for each kind that every dictionary has, the second dictionary dashed and named apart', () => {
    const coords = { step: [0, 100], layer: [1], kind: ['name', 'value'], seed: [0, 1] };
    const made = body({ step: 2, layer: 1, kind: 2, seed: 2 }, coords, {
      count: labelled(['layer', 'kind', 'seed'], [5, 5, 2, 0]),
      norm: labelled(['layer', 'kind', 'seed', 'step'], [0, 1, 0.25, 0.75, 0, 1, null, null]),
    });
    const found = featureCurves(made, 1);
    expect(found.map(({ name }) => name)).toEqual(['the line’s name (5)', 'the line’s name (5, other seed)']);
    expect(found.map(({ y, dashed }) => [y, dashed ?? false])).toEqual([[[0, 1], false], [[0.25, 0.75], true]]); // prettier-ignore
  });
});

describe('reassignment', () => {
  const coords = { step: [0, 100], situation: ['query', 'later'], outcome: ['right', 'rival'], finding: ['nothing yet', 'the last write wins'] };
  const dims = ['step', 'situation', 'outcome'];
  const made = body({ step: 2, situation: 2, outcome: 2 }, coords, { answered: labelled(dims, [0, 1, 0.5, 0, 1, 0, 0.75, 0]) });

  it('has the correct answers of each situation, and each step in words', () => {
    expect(answeredCurves(made).map(({ y }) => y)).toEqual([[0, 1], [0.5, 0.75]]); // prettier-ignore
    expect(findingAt(made, 100)).toBe('the last write wins');
    expect(findingAt(made, 50)).toBe('');
  });
});
