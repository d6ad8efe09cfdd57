import { describe, expect, it } from 'vitest';
import type { Body, Value } from '../../api/body';
import { tellHighest, tellMixing } from './mean-grid';

const POSITIONS = ['rhs 1', 'rhs 2', 'query'];
const over = (dims: string[], values: readonly Value[]) => ({ dims, values: [...values], units: '' });
const common = { title: '', attrs: {}, command: '', python: '' };

/** Two layers by three positions at steps 100 and 200, by noising. */
const mixed: Body = {
  ...common,
  sizes: { step: 2, direction: 1, layer: 2, position: 3 },
  coords: { step: over(['step'], [100, 200]), direction: over(['direction'], ['noising']), layer: over(['layer'], [0, 1]), position: over(['position'], POSITIONS) },
  variables: {
    success: over(['step', 'direction', 'layer', 'position'], [0.1, 0, 0, 0, 0, 0, 0.9, 0.2, 0.1, 0.1, 0.3, 0.2]),
    kept: over(['step', 'direction', 'layer', 'position'], [1, 1, 1, 0.75, 1, 1, 1, 1, 1, 1, 1, 1]),
    logit_difference: over(['step', 'direction', 'layer', 'position'], [0.1, 0, -0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
  },
  provenance: { run: 'r', step: null, n: 64, seed: 0, interval: '', note: '' },
};
/** The same at step 200, for depths 1 and 2. */
const apart: Body = {
  ...common,
  sizes: { depth: 2, layer: 2, position: 3 },
  coords: { depth: over(['depth'], [1, 2]), layer: over(['layer'], [0, 1]), position: over(['position'], POSITIONS) },
  variables: { success: over(['depth', 'layer', 'position'], [0.9, 0, 0.6, 0.1, 0, 0, 0.9, 0.95, 0, 0, 0, 0.4]) },
  provenance: { run: 'r', step: 200, n: 64, seed: 0, interval: '', note: '' },
};
const at = (step: number) => (layer: string, position: string) => ({ step, direction: 'noising', layer: Number(layer), position });

describe('the finding of the mean grid', () => {
  it('is of the measure and the step that are drawn', () => {
    expect(tellHighest(mixed, 'success', POSITIONS, at(100))).toBe('success is highest at rhs 1, entering L0: 10 %.');
    expect(tellHighest(mixed, 'success', POSITIONS, at(200))).toBe('success is highest at rhs 1, entering L0: 90 %.');
    expect(tellHighest(mixed, 'success', ['query'], at(200))).toBe('success is highest at query, entering L1: 20 %.');
  });
  it('is the smallest of what is kept, and the furthest either way of a difference', () => {
    expect(tellHighest(mixed, 'kept', POSITIONS, at(100))).toBe('kept is lowest at rhs 1, entering L1: 75 %.');
    expect(tellHighest(mixed, 'logit_difference', POSITIONS, at(100))).toBe('logit difference is furthest from 0 at query, entering L0: −0.5.');
  });
  it('compares mixed depths with each alone at the step of which both are known', () => {
    expect(tellMixing(mixed, apart)).toBe('At step 200 the best layer at rhs 2 succeeds in 30 % over all depths mixed and in 95 % at depth 2 alone, for the value passes there in another layer at each depth.');
    expect(tellMixing(mixed, { ...apart, provenance: { ...apart.provenance, step: 300 } })).toBe('');
  });
});
