import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { curvesOf } from './curves';
import { groupsOf, limitsOf, measuredStep, ownPoints, pointsOf, tellApart } from './points';
import { answerColumns, digitRows, pairFor, tellDraws, tellSwap } from './swap';

const provenance = { run: 'r', step: null, n: 2, seed: 0, interval: '', note: '' };
const labelled = (dims: string[], values: (number | string)[]) => ({ dims, values, units: '' });

/** One kind, two steps, two points, three axes: a coordinate is 100 step + 10 point + axis. */
const stored: Body = {
  title: '', sizes: { kind: 1, step: 2, point: 2, axis: 3 }, provenance, command: '', python: '', attrs: { rank: 10 },
  coords: {
    kind: labelled(['kind'], ['frozen']), step: labelled(['step'], [0, 300]), axis: labelled(['axis'], [1, 2, 3]),
    value: labelled(['point'], [7, 3]), name: labelled(['point'], ['k', 'c']), depth: labelled(['point'], [2, 1]),
    position: labelled(['point'], [2, 5]), pair: labelled(['point'], [0, 1]),
  },
  variables: {
    coordinate: labelled(['kind', 'step', 'point', 'axis'], [1, 2, 3, 11, 12, 13, 101, 102, 103, 111, 112, 113]),
    score: labelled(['kind', 'step'], [0.1, 0.9]), score_low: labelled(['kind', 'step'], [0, 0.8]), score_high: labelled(['kind', 'step'], [0.2, 1]),
  },
}; // prettier-ignore
const look = { kind: 'frozen', step: 300, across: 1, up: 3 } as const;

describe('points of a stored body', () => {
  it('stand at the chosen step and axes, marked by the chosen label', () => {
    const points = pointsOf(stored, look, 'name');
    expect(points.map(({ x, y, group }) => [x, y, group])).toEqual([[101, 103, 'k'], [111, 113, 'c']]);
    expect(points[0]?.name).toContain('value 7');
  });
  it('keep their limits whatever the step', () => {
    const [low, high] = limitsOf(stored, 'frozen', 2);
    expect(low).toBeLessThan(0);
    expect(high).toBeGreaterThan(112);
  });
  it('take the measured step nearest to the slider', () => {
    expect(measuredStep(stored, 140)).toBe(0);
    expect(measuredStep(stored, 170)).toBe(300);
  });
  it('have groups in the order of their labels', () => {
    expect(groupsOf(stored, 'value')).toEqual(['3', '7']);
    expect(groupsOf(stored, 'name')).toEqual(['c', 'k']);
  });
});

describe('a program of the reader', () => {
  it('takes its depth from the whole program', () => {
    const body: Body = {
      ...stored, sizes: { point: 1, axis: 3 }, attrs: { depth: 4 },
      coords: { axis: labelled(['axis'], [1, 2, 3]), value: labelled(['point'], [9]), name: labelled(['point'], ['b']), token: labelled(['point'], [':']), position: labelled(['point'], [18]) },
      variables: { coordinate: labelled(['point', 'axis'], [5, 6, 7]) },
    }; // prettier-ignore
    expect(ownPoints(body, look, 'depth')).toEqual([{ x: 5, y: 7, group: '4', name: 'your program, ‘:’ at position 18: b, value 9' }]);
  });
});

describe('a swap', () => {
  const outputs = ['a', ...'0123456789'];
  const row = (digit: number): number[] => outputs.map((output) => (output === String(digit) ? 1 : 0));
  const swapped = (after: number): Body => ({
    ...stored, sizes: { condition: 3, output: 11 }, attrs: { base_answer: '9', source_answer: '4' },
    coords: { condition: labelled(['condition'], ['base', 'counterfactual', 'swapped']), output: labelled(['output'], outputs) },
    variables: { probability: labelled(['condition', 'output'], [...row(9), ...row(4), ...row(after)]) },
  }); // prettier-ignore
  it('is a row of digits for each condition', () => {
    const { values, rows } = digitRows(swapped(4));
    expect(rows).toEqual(['before', 'counterfactual', 'after']);
    expect([values.indexOf(1), values.indexOf(1, 11), values.indexOf(1, 22)]).toEqual([9, 15, 26]);
    expect(answerColumns(swapped(4))).toEqual(new Set([9, 4]));
  });
  it('shows what is left for other tokens than digits', () => {
    const body = swapped(4);
    const elsewhere = { ...body, variables: { probability: labelled(['condition', 'output'], [1, ...row(9).slice(1).map(() => 0), ...row(4), ...row(4)]) } };
    const { columns, values } = digitRows(elsewhere);
    expect(values.slice(0, columns.length)).toEqual([...Array<number>(10).fill(0), 1]);
  });
  it('is told by what the likeliest output means', () => {
    expect(tellSwap(swapped(4))).toContain('the swap worked');
    expect(tellSwap(swapped(9))).toContain('still the program’s own answer');
    expect(tellSwap(swapped(2))).toContain('neither 9 nor');
    expect(tellDraws(swapped(4))).toBe('');
  });
  it('is told of several draws by their mean, its interval, and how many succeed', () => {
    const one = swapped(4);
    const body: Body = {
      ...one, attrs: { ...one.attrs, draws: 10, n_success: 3 },
      variables: { ...one.variables, probability_low: labelled(['output'], outputs.map(() => 0.25)), probability_high: labelled(['output'], outputs.map(() => 0.75)) },
    }; // prettier-ignore
    expect(tellSwap(body)).toMatch(/^On average over 10 draws the model says 4/);
    expect(tellDraws(body)).toMatch(/^3 of 10 draws give 4, .*\(25.* %? to 75.* %, 95 % over draws\)\.$/);
  });
});

describe('the pair that is swapped', () => {
  const program = 'c=1\nd=2\na=5\nb=a\ne=7\n#b:';
  const counterfactual = 'c=1\nd=2\na=8\nb=a\ne=7\n#b:';
  it('is the reader’s own for values', () => {
    expect(pairFor('values', program, counterfactual).counterfactual).toBe(counterfactual);
  });
  it('asks for another variable for names', () => {
    expect(pairFor('names', program, counterfactual).counterfactual).toBe(program.replace('#b:', '#e:'));
    const other = program.replace('#b:', '#c:');
    expect(pairFor('names', program, other).counterfactual).toBe(other);
  });
  it('is left alone where it cannot be read, or nothing else can be asked', () => {
    expect(pairFor('names', 'b=a', counterfactual).counterfactual).toBe(counterfactual);
    expect(pairFor('names', 'a=5\nb=a\n#b:', 'a=8\nb=a\n#b:').counterfactual).toBe('a=8\nb=a\n#b:');
  });
});

describe('curves', () => {
  it('carry intervals', () => {
    const three = { ...stored, coords: { ...stored.coords, kind: labelled(['kind'], ['frozen', 'refitted', 'random']) }, sizes: { ...stored.sizes, kind: 3 } };
    const spread = (values: number[]) => labelled(['kind', 'step'], [...values, ...values, ...values]);
    three.variables = { score: spread([0.1, 0.9]), score_low: spread([0, 0.8]), score_high: spread([0.2, 1]) };
    expect(curvesOf(three, 'score')[2]).toMatchObject({ name: 'random, of equal rank', x: [0, 300], y: [0.1, 0.9], low: [0, 0.8], high: [0.2, 1] });
  });
});

it('says how many points lie nearest to their own', () => {
  const at = (x: number, group: string) => ({ x, y: 0, group, name: '' });
  expect(tellApart([at(0, 'a'), at(1, 'a'), at(9, 'b'), at(10, 'b')], 'value')).toBe('In this plane 100 % of the points lie nearest to the others of their value; by chance it would be 50 %.');
  expect(tellApart([at(0, 'a'), at(10, 'a'), at(1, 'b'), at(9, 'b')], 'name')).toContain('0 % of the points');
  expect(tellApart([at(0, 'a')], 'depth')).toBe('');
});
