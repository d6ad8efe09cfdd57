import { describe, expect, it } from 'vitest';
import type { Body } from '../api/body';
import { columnOf, curves, rowsOver, ruleCurves, seedCurves, sourceFractions } from './curves';

const provenance = { run: 'made', step: null, n: 4, seed: 0, interval: '', note: '' };
const over = (dims: string[], values: unknown[]) => ({ dims, values: values as number[], units: '' });
const body: Body = {
  title: 'made', attrs: {}, provenance, command: '', python: '',
  sizes: { step: 2, depth: 2, rule: 3, source: 2 },
  coords: {
    step: over(['step'], [0, 100]), depth: over(['depth'], [1, 2]),
    rule: over(['rule'], ['first_constant', 'line_1', 'positional']), source: over(['source'], ['line 1', 'none']),
  },
  variables: {
    accuracy_by_depth: over(['step', 'depth'], [0.1, 0.2, 0.3, null]),
    accuracy_by_depth_low: over(['step', 'depth'], [0, 0.1, 0.2, null]),
    accuracy_by_depth_high: over(['step', 'depth'], [0.2, 0.3, 0.4, null]),
    agreement: over(['step', 'rule'], [0.5, 0.5, 0.4, 0.9, 0.9, 0.6]),
    rule_accuracy: over(['rule'], [0.5, 0.5, 0.3]),
    prediction_source: over(['step', 'source'], [0.25, 0.75, 1, 0]),
    answer_source: over(['source'], [0.5, 0]),
  },
}; // prettier-ignore

describe('curves', () => {
  it('makes one curve for each label, with its interval', () => {
    const [first, second] = curves(body, 'accuracy_by_depth', 'depth', (depth) => `depth ${depth}`);
    expect(first).toEqual({ name: 'depth 1', x: [0, 100], y: [0.1, 0.3], low: [0, 0.2], high: [0.2, 0.4] });
    expect(second?.y).toEqual([0.2, null]);
    expect(curves(body, 'nothing')).toEqual([]);
    const never = { ...body, variables: { accuracy_by_depth: over(['step', 'depth'], [0.1, null, 0.3, null]) } };
    expect(curves(never, 'accuracy_by_depth', 'depth').map(({ name }) => name)).toEqual(['1']);
  });
  it('joins rules that always say the same and draws each beside how often it is right', () => {
    const found = ruleCurves(body);
    expect(found.map((chart) => chart.map((series) => series.name))).toEqual([['first constant = line 1', 'the rule is right'], ['positional', 'the rule is right']]);
    expect(found[0]?.[1]?.y).toEqual([0.5, 0.5]);
    expect(found[0]?.[1]?.dashed).toBe(true);
  });
  it('turns fractions over (step, source) to rows of sources, or to what exceeds the answers', () => {
    expect(sourceFractions(body, false)).toEqual([0.25, 1, 0.75, 0]);
    expect(sourceFractions(body, true)).toEqual([-0.25, 0.5, 0.75, 0]);
    expect(rowsOver(body, 'accuracy_by_depth', 'depth')).toEqual([0.1, 0.3, 0.2, null]);
  });
  it('finds the column nearest to a step', () => {
    expect([0, 49, 51, 9999].map((step) => columnOf([0, 100, 200], step))).toEqual([0, 0, 1, 2]);
  });
  it('puts every seed inside the band from the least to the most', () => {
    const seeds: Body = {
      ...body,
      sizes: { seed: 2, step: 2 },
      coords: { seed: over(['seed'], [0, 4]), step: over(['step'], [0, 100]) },
      variables: {
        accuracy: over(['seed', 'step'], [0.1, 0.9, 0.2, null]),
        accuracy_low: over(['step'], [0.1, 0.9]),
        accuracy_high: over(['step'], [0.2, 0.9]),
      },
    };
    const [band, ...each] = seedCurves(seeds, 'accuracy', null);
    expect([band?.y, band?.low, band?.high]).toEqual([[null, null], [0.1, 0.9], [0.2, 0.9]]); // prettier-ignore
    expect(each.map((series) => series.name)).toEqual(['seed 0', 'seed 4']);
    for (const series of each)
      series.y.forEach((y, index) => {
        if (y === null) return;
        expect(y).toBeGreaterThanOrEqual(band?.low?.[index] ?? 0);
        expect(y).toBeLessThanOrEqual(band?.high?.[index] ?? 1);
      });
  });
});
