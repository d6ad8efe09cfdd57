import { describe, expect, it } from 'vitest';
import type { Body, Labelled, Value } from '../../api/body';
import { parseSum } from '../../sums/sum';
import { blockOf, countAhead, largestCells, positionsOf } from './circuit';
import { answerBars, expectedLooks, lookOfEquals, patternOf, sumCurves, tellSum, tellValues } from './looks';
import { bestNeuron, countFrequencies, fitted, neuronPoints, preactivation, reachOf, tellFrequencies } from './neurons';
import { knownVariable, signed, tellScores, termCells, termCurves, termReach } from './scores';
import { describeSplit, halfCurves, splitCurves, sortSpikes, spikeBands, spikesOf } from '../../reading/splits';
import { partGroups, splitBars, tellTransplant, usualEnds } from './transplant';

const over = (dims: string[], values: Value[]): Labelled => ({ dims, values, units: '' });

function makeBody(sizes: Record<string, number>, coords: Record<string, Labelled>, variables: Record<string, Labelled>, attrs = {}): Body {
  return { title: '', sizes, coords, variables, attrs, provenance: { run: 'r', step: 1, n: 1, seed: 0, interval: '', note: '' }, command: '', python: '' };
}

describe('splits', () => {
  const body = makeBody(
    { step: 2, split: 3, half: 2, spike: 1 },
    { step: over(['step'], [0, 10]), split: over(['split'], ['0add', '1tr', '2var1']), half: over(['half'], ['swap_seen', 'both_held']), spike: over(['spike'], [1]) },
    {
      split_accuracy: over(['step', 'split'], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
      half_accuracy: over(['step', 'split', 'half'], [0.1, 0.2, null, null, null, null, 0.9, 0.8, null, null, null, null]),
      spike_before: over(['spike'], [0]), spike_after: over(['spike'], [10]), spike_size: over(['spike'], [0.3]), spike_splits: over(['spike'], ['1tr 2var1']), spike_published: over(['spike'], [2]),
    },
  ); // prettier-ignore
  it('are told by how many variables they have and what is new', () => {
    expect(describeSplit('2var1')).toEqual({ count: 2, kind: 'var1', title: 'two variables: one in a new position', short: '2 variables, one moved' });
    expect(describeSplit('odd').title).toBe('odd');
    expect(splitCurves(body, 2).map(({ name, y }) => [name, y])).toEqual([['one in a new position', [0.3, 0.6]]]);
    expect(splitCurves(body).length).toBe(3);
  });
  it('of new pairs have two halves, one of them dashed', () => {
    expect(halfCurves(body, 0).map(({ y, dashed }) => [y, dashed])).toEqual([[[0.1, 0.9], false], [[0.2, 0.8], true]]); // prettier-ignore
  });
  it('jump at spikes', () => {
    expect(spikesOf(body)).toEqual([{ number: 1, before: 0, after: 10, size: 0.3, splits: '1tr 2var1', published: 2 }]);
    expect(spikeBands(spikesOf(body))).toEqual([{ name: 'spike 1', from: 0, to: 10, weight: 'strong' }]);
    expect(spikesOf({ ...body, sizes: { ...body.sizes, spike: 0 } })).toEqual([]);
  });
});

describe('spikes', () => {
  const made = (...published: number[]) => published.map((one, index) => ({ number: index + 1, before: 10 * index, after: 10 * index + 5, size: 0.3, splits: '', published: one }));
  it('that the paper tells of come first and are strong', () => {
    const { first, others } = sortSpikes(made(0, 1, 0, 2));
    expect([first.map(({ number }) => number), others.map(({ number }) => number)]).toEqual([[2, 4], [1, 3]]); // prettier-ignore
    expect(spikeBands(made(0, 1, 0, 2)).map(({ weight }) => weight)).toEqual(['faint', 'strong', 'faint', 'strong']);
    const same = (step: number): number => step;
    expect(usualEnds([0, 50], made(0, 1), null, null, same)).toEqual({ receiver: 10, donor: 15 });
  });
  it('are all offered where the paper tells of none of them', () => {
    expect(sortSpikes(made(0, 0))).toEqual({ first: made(0, 0), others: [] });
  });
});

describe('one sum', () => {
  const sum = parseSum('_ c=1 b=17 | b+19', { modulus: 59, nVariables: 12, operator: '+' });
  const pattern = Array.from({ length: 2 * 2 * 256 }, (_, index) => (index % 256 === 15 * 16 + 13 ? 0.7 : index % 256 === 15 * 16 + 4 ? 0.2 : 0));
  const body = makeBody(
    { step: 2, layer: 2, query: 16, key: 16, output: 3, operand: 2 },
    { step: over(['step'], [5, 6]), layer: over(['layer'], [1, 2]), output: over(['output'], ['35', '36', '37']), value_position: over(['operand'], [4, 14]) },
    { pattern: over(['step', 'layer', 'query', 'key'], pattern), probability: over(['step', 'output'], [0.5, 0.3, 0.2, 0.1, 0.8, 0.1]) },
    { answer: '36' },
  ); // prettier-ignore
  it('is looked at where the circuit needs it', () => {
    expect([...expectedLooks(sum, 1, 2)].sort()).toEqual(['15,13', '15,14', '2,1', '4,3']);
    expect([...expectedLooks(sum, 2, 2)].sort()).toEqual(['15,14', '15,4']);
    expect(patternOf(body, 5, 1)[15 * 16 + 13]).toBe(0.7);
    expect(patternOf(body, 5, 1)[1]).toBeNull();
    expect(lookOfEquals(body, 2, [4, 14])).toEqual([0.2, 0.2]);
    expect(lookOfEquals(body, 1, [4, 4])).toEqual([0.2, 0.2]);
  });
  it('is answered, with the right answer always shown', () => {
    expect(answerBars(body, 5, 1).map((bar) => bar.label)).toEqual(['36 (answer)']);
    expect(answerBars(body, 5).map((bar) => bar.label)).toEqual(['35', '36 (answer)', '37']);
    const percent = (fraction: number): string => `${100 * fraction} %`;
    expect(tellSum(body, 5, percent)).toBe('The model says 35 (50 %). The right answer is 36.');
    expect(tellSum(body, 6, percent)).toBe('The model says 36 (80 %), which is right.');
    expect(sumCurves(body)[0]?.y).toEqual([0.3, 0.8]);
    expect(tellValues(sum)).toContain('b is 17, written at position 4; 19 stands at position 14');
  });
});

describe('the circuit', () => {
  const kinds = over(['query'], ['number', 'variable', 'position', 'position']);
  const labels = ['0', 'a', 'position 0', 'position 1'];
  const body = makeBody(
    { query: 4, key: 4, query_position: 2, key_position: 2 },
    { query: over(['query'], labels), key: over(['key'], labels), query_kind: kinds, key_kind: { ...kinds, dims: ['key'] } },
    { qk1: over(['query', 'key'], Array.from({ length: 16 }, (_, index) => index)), allowed: over(['query_position', 'key_position'], [false, false, true, false]) },
  ); // prettier-ignore
  it('is cut into blocks', () => {
    expect(blockOf(body, 'variable', 'position')).toEqual({ rows: ['a'], columns: ['p0', 'p1'], values: [6, 7] });
    expect(blockOf(body, 'token', 'number')).toEqual({ rows: ['0', 'a'], columns: ['0'], values: [0, 4] });
    expect(positionsOf(body, false)).toEqual([10, 11, 14, 15]);
    expect(positionsOf(body, true)).toEqual([null, null, 14, null]);
  });
  it('points at the largest of each row, and counts what leads', () => {
    expect([...largestCells([1, 3, null, null], 2)]).toEqual(['0,1']);
    expect(countAhead([null, 1, -1, 0])).toEqual({ ahead: 1, of: 3 });
  });
});

describe('neurons', () => {
  const n = 7;
  const indices = Array.from({ length: n }, (_, index) => index);
  const component = indices.map((index) => 0.25 + 2 * Math.cos((2 * Math.PI * 3 * index) / n + 0.4));
  const body = makeBody(
    { neuron: 2, number: n, index: n },
    { first: over(['index'], indices), second: over(['index'], indices) },
    {
      part: over(['number', 'neuron'], component.flatMap((value) => [value, 1])),
      frequency: over(['neuron'], [3, 1]), mean: over(['neuron'], [0.5, 2]), amplitude: over(['neuron'], [2, 0]),
      phase_1: over(['neuron'], [0.4, 0]), phase_2: over(['neuron'], [0.4, 0]), explained_variance: over(['neuron'], [1, null]),
    },
  ); // prettier-ignore
  it('that are Fourier components equal their fit', () => {
    const [values, fit] = [preactivation(body, 0), fitted(body, 0)];
    expect(values.length).toBe(n * n);
    values.forEach((value, index) => expect(value).toBeCloseTo(fit[index] ?? NaN, 10));
  });
  it('that are constant have no point', () => {
    expect(neuronPoints(body).neurons).toEqual([0]);
    expect(bestNeuron(body)).toBe(0);
    expect(countFrequencies(body)).toEqual([{ frequency: 3, count: 1 }]);
    expect(tellFrequencies(countFrequencies(body))).toBe('3 (1)');
    expect(tellFrequencies([5, 4, 3].map((frequency) => ({ frequency, count: 2 })), 2)).toBe('5 (2), 4 (2) and 1 more');
    expect(tellFrequencies([])).toBe('none');
  });
  it('are drawn on a scale of round numbers', () => {
    expect([reachOf([0.3, -4.2]), reachOf([1.5]), reachOf([-60])]).toEqual([5, 2, 100]);
  });
});

describe('transplants', () => {
  const body = makeBody(
    { condition: 3, split: 2 },
    { condition: over(['condition'], ['receiver', 'transplanted', 'donor']), split: over(['split'], ['0tr', '1tr']) },
    Object.fromEntries(['accuracy', 'accuracy_low', 'accuracy_high'].map((name) => [name, over(['condition', 'split'], [1, 0.4, 1, 0.85, 1, 0.9])])),
  );
  it('are told as a fraction of the way', () => {
    expect(tellTransplant(body)).toBe("Of the way from the receiver's accuracy up to the donor's: 1 variable, as trained 90 %.");
    expect(splitBars(body, 'transplanted')[1]).toMatchObject({ label: '1 variable, as trained', value: 0.85, reference: 0.4 });
    expect(splitBars(body, 'receiver')[1]?.reference).toBeUndefined();
  });
  it('that make a split worse, as the donor is, are told apart from gains', () => {
    const worse = makeBody(body.sizes, body.coords, { accuracy: over(['condition', 'split'], [0.4, 0.2, 0.3, 0.5, 0.2, 0.8]) });
    expect(tellTransplant(worse)).toBe("Of the way from the receiver's accuracy up to the donor's: 1 variable, as trained 50 %. Where the donor is worse, of the way down: 0 variables, as trained 50 %.");
  });
  it('go from the pins, or across the first spike, or through the whole run', () => {
    const spike = { number: 1, before: 20, after: 30, size: 0.5, splits: '', published: 0 };
    const same = (step: number): number => step;
    expect(usualEnds([0, 50], [spike], 7, 8, same)).toEqual({ receiver: 7, donor: 8 });
    expect(usualEnds([0, 50], [spike], null, null, same)).toEqual({ receiver: 20, donor: 30 });
    expect(usualEnds([0, 50], [], null, null, same)).toEqual({ receiver: 0, donor: 50 });
  });
  it('have their parts in groups', () => {
    const names = ['nothing', 'QK1', 'variable b', 'position 13', 'positions', 'pattern 2'];
    const listed = makeBody({ part: 6 }, { part: over(['part'], names) }, { meaning: over(['part'], names), kind: over(['part'], ['weights', 'weights', 'weights', 'weights', 'weights', 'pattern']) });
    expect(partGroups(listed).map(({ title, parts }) => [title, parts.map((part) => part.name)])).toEqual([
      ['weights', ['QK1', 'positions']],
      ['where it attends', ['pattern 2']],
      ['single variables', ['variable b']],
      ['single positions', ['position 13']],
    ]);
  });
});

describe('score terms', () => {
  const parts = ['token', 'position', 'layer 1'];
  const early = [0, 0, 0, 0, 0, 0, 0, 0, -8.3];
  const late = [0.2, -0.1, 0.1, 0, 0, 0, 0, -0.04, 2];
  const ones = early.map(() => 1);
  const body = makeBody(
    { step: 2, variable: 2, operand: 1, query_part: 3, key_part: 3 },
    { step: over(['step'], [0, 100]), variable: over(['variable'], ['a', 'l']), operand: over(['operand'], ['first']), query_part: over(['query_part'], parts), key_part: over(['key_part'], parts) },
    { term: over(['step', 'variable', 'operand', 'query_part', 'key_part'], [...ones, ...early, ...ones, ...late]) },
    { variable: 'l' },
  ); // prettier-ignore
  it('are those of the variable that rises until another is chosen', () => {
    expect([knownVariable(body, ''), knownVariable(body, 'a'), knownVariable(body, 'z')]).toEqual(['l', 'a', 'l']);
  });
  it('add up to the whole score, and the match comes next', () => {
    const [score, match, ...others] = termCurves(body, 'l', 'first');
    expect([score?.name, match?.name, others.length]).toEqual(['whole score', 'h₌·h', 8]);
    expect(match?.y).toEqual([-8.3, 2]);
    expect(score?.y[1]).toBeCloseTo(2.16, 10);
    expect(others.at(-1)).toMatchObject({ name: 'E₌·E', y: [0, 0.2] });
  });
  it('are laid out and told at a checkpoint', () => {
    expect(termCells(body, 'l', 'first', 100)).toEqual({ rows: ['E₌', 'P₁₅', 'h₌'], columns: ['E', 'P', 'h'], values: late });
    expect(tellScores(body, 'l', 0)).toBe('At step 0 the value of l scores −8.3 as first operand, of which −8.3 is the match of what layer 1 brought to both.');
    expect([termReach(body, 'l'), termReach(body, 'a')]).toEqual([9, 1]);
    expect([signed(-0.04), signed(-1.26)]).toEqual(['0.0', '−1.3']);
  });
});
