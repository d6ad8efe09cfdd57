import { describe, expect, it } from 'vitest';
import type { Body, Value } from '../../api/body';
import { curvesOfTasks, curvesOverN, firstSolved, nameModel, toggled, unsolved } from '../../reading/symbols';
import { chooseTask, eigenSeries, limitsOf, showError } from './kernel';
import { readLabels, readTyped } from '../../templates/typed';

function table(columns: Record<string, Record<string, Value[]>>): Body {
  const variables = Object.entries(columns).flatMap(([dim, named]) => Object.entries(named).map(([name, values]) => [name, { dims: [dim], values, units: '' }]));
  const sizes = Object.fromEntries(Object.entries(columns).map(([dim, named]) => [dim, Object.values(named)[0]?.length ?? 0]));
  return { title: '', sizes, coords: {}, variables: Object.fromEntries(variables), attrs: {}, provenance: { run: '', step: null, n: null, seed: null, interval: '', note: '' }, command: '', python: '' };
}

const CURVES = table({
  variant: {
    model: ['both', 'plain', 'plain', 'plain', 'rnn'], n: [16, 512, 32, 512, 8], heads: [4, 4, 4, 16, 4],
    mean: [0.6, 0.5, 1, 0.4, null], low: [0.5, null, 0.9, null, null], high: [0.7, null, 1.1, null, null], seeds: [2, 1, 2, 1, 0],
  },
  point: { paper_model: ['plain', 'lstm'], paper_n: [128, 64], paper_width: [null, null], paper_value: [0.81, 0.2] },
}); // prettier-ignore

describe('curves over n', () => {
  const series = curvesOverN(CURVES, true);
  it('are one for each model and number of heads, smallest n first, in a fixed order', () => {
    expect(series.filter(({ of }) => !of).map(({ name }) => name)).toEqual(['transformer', 'transformer, 16 heads', 'both scalings', 'RNN']);
    expect(series[0]).toMatchObject({ x: [32, 512], y: [1, 0.5], low: [0.9, null] });
  });
  it("show the paper's points with the model they are of, and only where it is trained", () => {
    expect(series.filter(({ of }) => of)).toMatchObject([{ of: 'transformer', x: [128], y: [0.81] }]);
    expect(curvesOverN(CURVES, false).some(({ of }) => of)).toBe(false);
  });
  it('keep two models of one colour apart by mark', () => {
    expect(new Set(series.map(({ name }) => name)).size).toBe(series.length);
    expect(nameModel('something new')).toBe('something new');
  });
  it('of tasks are those of one model', () => {
    const body = table({ variant: { model: ['plain', 'both', 'plain'], n: [1, 1, 2], heads: [4, 4, 4], task: ['x', 'x', 'y'], mean: [1, 2, 3], low: [], high: [], seeds: [1, 1, 1] } });
    expect(curvesOfTasks(body, 'plain').map(({ name, y }) => [name, y])).toEqual([['x', [1]], ['y', [3]]]);
  });
});

describe('the first n that is solved', () => {
  const body = table({
    solved: { solved_model: ['plain', 'plain', 'both'], solved_width: [64, 128, 64], solved_n: [64, null, 16], solved_most: [512, 256, 32] },
    point: { paper_model: ['plain'], paper_n: [64], paper_width: [64], paper_value: [0.1] },
  });
  it('is drawn over widths, with a gap where none is', () => expect(firstSolved(body, true)).toMatchObject([{ x: [64, 128], y: [64, null] }, { y: [16] }, { of: 'transformer', x: [64], y: [64] }]));
  it('says where none is', () => expect(unsolved(body)).toEqual([{ model: 'transformer', width: 128, most: 256 }]));
});

describe('what a reader types', () => {
  it('is read, or told what is wrong', () => {
    expect(readTyped(' ABA  ABB ', '1, -1')).toMatchObject({ texts: ['ABA', 'ABB'], labels: [1, -1], errors: [], problems: [], tooLarge: '' });
    expect(readTyped("A' AB", '').errors[0]).toContain("A', column 2: a quoted token");
    expect(readTyped('', '').errors).toEqual(['Write at least one template.']);
    expect(readTyped('AB Ax', '').problems[0]).toContain('both match s0 x');
    expect(readTyped('AAAAAAAAAAA', '').tooLarge).toContain('has 11 tokens');
    expect(readTyped('A B C D E F G H I', '').tooLarge).toContain('9 templates are too many');
  });
  it('has one label for each template, or none', () => {
    expect(readLabels('', 2)).toEqual({ labels: null, error: '' });
    expect(readLabels('1', 2).error).toContain('2 templates and 1 labels');
    for (const text of ['1,', 'C,D', '1,Infinity', '1e9,1']) expect(readLabels(text, 2).error, text).toContain('Labels are numbers');
  });
});

describe('the kernel', () => {
  const tasks = { ...table({ task: { templates: ['AA AB', 'A'], labels: ['1,-1', 'A'], stored: [true, true] } }), coords: { task: { dims: ['task'], values: ['same-different', 'copy'], units: '' } } };
  it('of a named task is stored, for its own labels', () => {
    expect(chooseTask(tasks, ['AA', 'AB'], [1, -1])).toBe('same-different');
    expect(chooseTask(tasks, ['AA', 'AB'], [1, 1])).toBeNull();
    expect(chooseTask(tasks, ['A'], null)).toBe('copy');
  });
  it('has colours between its own ends', () => {
    const [low, high] = limitsOf([0.2469, 0.2591, null]);
    expect(low).toBeLessThanOrEqual(0.2469);
    expect(high).toBeGreaterThanOrEqual(0.2591);
    expect(high - low).toBeLessThan(0.02);
    expect(limitsOf([0.5])[1]).toBeGreaterThanOrEqual(0.5);
  });
  it('shows as many digits as the error allows, and no interval below zero', () => {
    expect(showError(0.259082, 0.0000165)).toBe('0.25908 ± 0.00002');
    expect(eigenSeries([{ value: -1e-17, low: -1e-16, high: 1e-16 }])[0]).toMatchObject({ y: [0], low: [0] });
  });
});

it('a switch is turned off and on', () => {
  expect(toggled(new Set(['RNN']), 'LSTM')).toBe('LSTM,RNN');
  expect(toggled(new Set(['RNN']), 'RNN')).toBe('');
});
