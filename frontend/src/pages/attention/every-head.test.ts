import { describe, expect, it } from 'vitest';
import type { Body, Value } from '../../api/body';
import { costliestOf, tellSet, toggleHead } from './every-head';

const over = (dims: string[], values: Value[]) => ({ dims, values, units: '' });
/** Two heads in one layer, two depths; H1 costs 3 of 9 logits at depth 2. */
const body = (low: number[]): Body => ({
  title: '', attrs: {}, command: '', python: '',
  provenance: { run: '', step: null, n: null, seed: null, interval: '', note: '' },
  sizes: { layer: 1, head: 2, depth: 2 },
  coords: { layer: over(['layer'], [4]), head: over(['head'], [0, 1]), depth: over(['depth'], [1, 2]) },
  variables: {
    lost: over(['layer', 'head', 'depth'], [0.1, 0.2, 0.3, 3]),
    lost_low: over(['layer', 'head', 'depth'], low),
    accuracy: over(['layer', 'head', 'depth'], [1, 1, 1, 0.5]),
    margin: over(['depth'], [8, 9]),
  },
}); // prettier-ignore

describe('heads ablated in turn', () => {
  it('are told by the one whose interval is farthest from none', () => {
    expect(costliestOf(body([-1, -1, 0.2, 2]))).toBe('L4.H1 costs most, at depth 2: 3.0 logits, where the whole model’s margin is 9.0; without it 50 % are answered correctly.');
    expect(costliestOf(body([-1, -1, -1, -1]))).toContain('No head by itself');
  });
  it('together are told by depth', () => {
    const set: Body = { ...body([]), variables: { accuracy: over(['depth'], [1, 0.3]) } };
    expect(tellSet(set, ['L1.H0', 'L1.H1', 'L2.H0'])).toBe('Without L1.H0, L1.H1 and L2.H0: depth 1 100 %, depth 2 30 %.');
  });
  it('join a set and leave it again', () => {
    expect(toggleHead(toggleHead(['a'], 'b'), 'b')).toEqual(['a']);
  });
});
