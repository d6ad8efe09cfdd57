import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { rowsOf, traces, verdictOf } from './coefficient';
import { announcementsOf, diagnosticSeries } from './diagnostics';

const labelled = (dims: string[], values: (number | string | null)[]) => ({ dims, values, units: '' });
const made = (content: object) => ({ title: 'made', attrs: {}, provenance: { run: 'made', step: null, n: null, seed: null, interval: '', note: '' }, ...content }) as unknown as Body;

const COEFFICIENT = made({
  sizes: { step: 3, chain: 2, draw: 2 },
  coords: { step: labelled(['step'], [0, 100, 200]), chain: labelled(['chain'], [0, 1]), draw: labelled(['draw'], [0, 1]) },
  variables: {
    trace: labelled(['step', 'chain', 'draw'], [0, -9, 0, -8, 0, 5, 0, 6, null, null, null, null]),
    diverged: labelled(['step'], [0, 0, 1]),
    left: labelled(['step'], [0, 0, 0]),
    settled: labelled(['step'], [1, 1, 0]),
    negative: labelled(['step'], [1, 0.1, null]),
  },
});

describe('the chains of a checkpoint', () => {
  it('are drawn one by one', () => {
    expect(traces(COEFFICIENT, 100)).toEqual([{ name: 'chain 1', x: [0, 1], y: [0, 5] }, { name: 'chain 2', x: [0, 1], y: [0, 6] }]);
  });
  it('say whether they may be trusted', () => {
    expect(verdictOf(COEFFICIENT, 0)).toContain('100 % of the draws have a lower loss');
    expect(verdictOf(COEFFICIENT, 100)).toBe('The chains have settled.');
    expect(verdictOf(COEFFICIENT, 200)).toContain('no coefficient');
  });
});

describe('refined coefficients', () => {
  const body = made({
    sizes: { step: 1, row: 3 },
    coords: { step: labelled(['step'], [0]), row: labelled(['row'], ['L0', 'L1', 'misleading']), part: labelled(['row'], ['L0', 'L1', 'all']) },
    variables: { coefficient: labelled(['step', 'row'], [1, 2, 3]) },
  });
  it('are of layers or of questions', () => {
    expect(rowsOf(body, 'layers').map(({ name, y }) => [name, y[0]])).toEqual([['L0', 1], ['L1', 2]]);
    expect(rowsOf(body, 'questions').map(({ name }) => name)).toEqual(['misleading']);
  });
});

describe('diagnostics', () => {
  const body = made({
    sizes: { step: 1, layer: 2, head: 1, number: 2 },
    coords: { step: labelled(['step'], [0]), layer: labelled(['layer'], [0, 1]), head: labelled(['head'], [0]), number: labelled(['number'], ['never', 'early']) },
    variables: {
      repetition: labelled(['step'], [0.9]),
      repetition_true: labelled(['step'], [0.5]),
      collapse: labelled(['step', 'layer'], [0.1, 0.2]),
      entropy: labelled(['step', 'layer', 'head'], [1, 2]),
      departs: labelled(['number'], [null, 100]),
      lead: labelled(['number'], [null, 50]),
      announces: labelled(['number'], [0, 1]),
      base_rate: labelled(['number'], [0.5, 0.5]),
    },
  });
  it('have a curve for each layer or head, and repetition beside that of the truth', () => {
    expect(diagnosticSeries(body, 'collapse').map(({ name }) => name)).toEqual(['L0', 'L1']);
    expect(diagnosticSeries(body, 'entropy').map(({ name }) => name)).toEqual(['L0.H0', 'L1.H0']);
    expect(diagnosticSeries(body, 'repetition').map(({ name, dashed }) => [name, dashed ?? false])).toEqual([['answers', false], ['correct answers', true]]);
  });
  it('announce in the order in which they leave their range', () => {
    expect(announcementsOf(body).map(({ number, announces }) => [number, announces])).toEqual([['early', true], ['never', false]]);
  });
});
