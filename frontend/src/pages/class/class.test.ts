import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import type { RunDetail, RunSummary } from '../../api/client';
import { additionExercises, readLast } from './addition';
import { bindingExercises, changeLine1, readLines } from './binding';
import { cameTrue, tellScore } from './exercise';
import { readFewest, symbolExercises } from './symbols';

const body = (sizes: object, coords: Record<string, unknown[]>, variables: Record<string, [string[], unknown[]]>, attrs: object = {}): Body =>
  ({
    title: '', sizes, attrs,
    coords: Object.fromEntries(Object.entries(coords).map(([dim, values]) => [dim, { dims: [dim], values, units: '' }])),
    variables: Object.fromEntries(Object.entries(variables).map(([name, [dims, values]]) => [name, { dims, values, units: '' }])),
  }) as unknown as Body; // prettier-ignore

const RUN = {
  name: 'mine', kinds: ['programs', 'sums'], steps: [0, 100, 900],
  phases: [{ name: 'heuristic', first_step: 50, last_step: 200, accuracy: 0.5 }, { name: 'addition', first_step: 50, last_step: 200, accuracy: 0.5 }],
} as unknown as RunSummary; // prettier-ignore
const PREDICTIONS = {
  ...body({ step: 3, program: 1 }, { step: [0, 100, 900] }, {
    predicted: [['step', 'program'], [1, 4, 2]], source: [['step', 'program'], [0, 1, 2]],
    probability: [['step', 'program'], [0, 0, 1]], line_1_probability: [['step', 'program'], [0, 1, 0]],
  }),
} as Body; // prettier-ignore
Object.assign(PREDICTIONS.coords, {
  text: { dims: ['program'], values: ['a=4\nb=2\nc=b\n#c:'], units: '' },
  answer: { dims: ['program'], values: [2], units: '' },
  rule_line_1: { dims: ['program'], values: [4], units: '' },
  attribute_depth: { dims: ['program'], values: [2], units: '' },
});
const EXAMPLES = body({ sum: 2 }, { text: ['_ a=3 b=5 | a+b', '_ a=3 | a+2'] }, {});
EXAMPLES.coords.text!.dims = ['sum'];
const DETAIL = { config: { task: { modulus: 59, n_variables: 12, operator: '+' } } } as unknown as RunDetail;
const predicted = (said: string, attrs: object): Body => body({ step: 1, output: 2 }, { step: [100], output: [said, 'x'] }, { probability: [['step', 'output'], [0.9, 0.1]] }, attrs);

describe('the ten exercises', () => {
  const all = [...bindingExercises(RUN, PREDICTIONS), ...additionExercises(RUN, EXAMPLES, DETAIL), ...symbolExercises()];
  it('are ten, with names of their own, a hint each, and several ways to be wrong', () => {
    expect(new Set(all.map(({ name }) => name)).size).toBe(10);
    expect(all.every(({ hint, question, options }) => hint && question && options.length !== 1)).toBe(true);
  });
  it('take the answer from what is computed, whatever that is', () => {
    const halfway = all.find(({ name }) => name === 'halfway')!;
    for (const said of ['4', '2']) {
      expect(halfway.options).toContain(said);
      expect(cameTrue(said, halfway.read(predicted(said, { answer: '2', line_1: '4' })))).toBe(true);
      expect(cameTrue(said === '4' ? '2' : '4', halfway.read(predicted(said, { answer: '2', line_1: '4' })))).toBe(false);
    }
    expect(halfway.read(predicted('9', { answer: '2' })).right).toEqual(['another digit']);
    const early = all.find(({ name }) => name === 'early')!;
    expect(early.read(predicted('8', { answer: '8' })).right).toEqual(['right']);
    expect(early.read(predicted('5', { answer: '8' })).right).toEqual(['wrong']);
    const blind = all.find(({ name }) => name === 'blind')!;
    for (const verdict of blind.options) expect(blind.read(body({}, {}, {}, { verdict, why: 'so' })).right).toEqual([verdict]);
  });
  it('ask nothing where the run shows no shortcut', () => {
    expect(bindingExercises({ ...RUN, phases: [] }, PREDICTIONS)).toEqual([]);
    expect(additionExercises({ ...RUN, phases: [] }, EXAMPLES, DETAIL)).toEqual([]);
  });
});

describe('an answer', () => {
  it('is compared as a number where it is one', () => {
    expect(cameTrue(' 07', { right: ['7'], told: '' })).toBe(true);
    expect(cameTrue('70', { right: ['7'], told: '' })).toBe(false);
  });
  it('is counted once it was checked', () => {
    expect(tellScore(10, [true, false, null])).toBe('2 of 10 checked, 1 as predicted.');
  });
  it('follows the digit of line 1 only if the model says it', () => {
    const line1 = bindingExercises(RUN, PREDICTIONS).find(({ name }) => name === 'line1')!;
    expect(changeLine1('a=4\nb=2\n#b:')).toBe('a=7\nb=2\n#b:');
    expect(line1.read(predicted('7', { answer: '2' })).right).toEqual(['yes, it says the new digit']);
    expect(line1.read(predicted('4', { answer: '2' })).right).toEqual(['no']);
  });
  it('of lines weighs each by how many answers stand there', () => {
    const lines = (first: number): Body =>
      body({ step: 1, root_line: 3 }, { step: [100], root_line: [1, 2, 3] }, { accuracy_by_root_line: [['step', 'root_line'], [first, 0.2, 0.6]], n_by_root_line: [['root_line'], [10, 30, 10]] });
    expect(readLines(lines(0.9), 100)).toMatchObject({ right: ['answers on line 1'], told: expect.stringContaining('30 %') });
    expect(readLines(lines(0.1), 100).right).toEqual(['answers on later lines']);
    expect(readLines(lines(0.31), 100).right).toEqual(['neither, within five points']);
  });
  it('of kinds of sums is the last that stays, or all that never do', () => {
    const splits = (last: number): Body =>
      body({ step: 2, split: 2 }, { step: [100, 900], split: ['0tr', '2add'] }, { split_accuracy: [['step', 'split'], [1, 0.1, 1, last]] });
    expect(readLast(splits(0.95)).told).toContain('from step 900');
    expect(readLast(splits(0.5)).told).toContain('Never');
    expect(readLast(splits(0.5)).right).toHaveLength(1);
  });
  it('of models is the one that halves the loss first, ties together', () => {
    const curves = (other: number): Body => {
      const rows = body({ variant: 4 }, {}, { mean: [['variant'], [1, 0.4, other, 0.1]] });
      Object.assign(rows.variables, {
        model: { dims: ['variant'], values: ['plain', 'plain', 'both', 'both'], units: '' },
        n: { dims: ['variant'], values: [32, 64, 32, 64], units: '' },
        heads: { dims: ['variant'], values: [4, 4, 4, 4], units: '' },
      });
      return rows;
    };
    expect(readFewest(curves(0.3)).right).toEqual(['both scalings']);
    expect(readFewest(curves(0.8)).right).toEqual(['transformer', 'both scalings']);
  });
});
