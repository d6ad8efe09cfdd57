import { expect, test } from 'vitest';
import type { Body } from '../../api/body';
import { listSeries, pathOf, readPair } from './series';

const label = (dims: string[], values: (string | number | boolean)[]) => ({ dims, values, units: '' });
const body: Body = {
  title: '',
  sizes: { series: 2, step: 3 },
  coords: { series: label(['series'], ['residual-n1000-seed0', 'heads-n8-seed0']), step: label(['step'], [0, 500, 2000]) },
  variables: {
    measured: label(['series', 'step'], [true, true, false, false, false, false]),
    grid: label(['series'], ['residual', 'heads']),
    metric: label(['series'], ['logit_difference', 'kl']),
    direction: label(['series'], ['noising', 'denoising']),
    n: label(['series'], [1000, 8]),
  },
  attrs: {},
  provenance: { run: 'made', interval: '', note: '' },
  command: '',
  python: '',
};

test('a series that grows says how far it is', () => {
  const [residual, heads] = listSeries(body);
  expect(residual).toMatchObject({ steps: [0, 500], of: 3, n: 1000, metrics: ['success', 'logit_difference'] });
  expect(residual?.title).toBe('residual stream, 1,000 pairs, noising');
  expect(heads).toMatchObject({ steps: [], metrics: ['success', 'kl'] });
});

test('the step of the slider stands for the nearest that is measured', () => {
  const [residual, heads] = listSeries(body);
  expect(pathOf('made', residual, 2000, null)).toBe('runs/made/grid-series/residual-n1000-seed0/500.json');
  expect(pathOf('made', residual, 100, 7)).toBe('runs/made/grid-series/residual-n1000-seed0/0/7.json');
  expect(pathOf('made', heads, 0, null)).toBeNull();
  expect(pathOf('made', undefined, 0, null)).toBeNull();
});

test('a pair is a number among them, anything else the mean', () => {
  expect(['7', '0', '8', '-1', '', '1.5'].map((text) => readPair(text, 8))).toEqual([7, 0, null, null, null, null]);
});
