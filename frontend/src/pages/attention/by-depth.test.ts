import { expect, it } from 'vitest';
import type { Body, Labelled, Value } from '../../api/body';
import { barLimit, costliest, depthBars, depthsAt, knownPosition, lostBy, positionsOf, tellCostliest, wordsOfPosition } from './by-depth';

const over = (dims: string[], values: Value[]): Labelled => ({ dims, values, units: '' });
/** Two layers of one head; at rhs 2, which chains of depth 1 do not have, the second layer's head is needed. */
const body: Body = {
  title: '',
  sizes: { ablated_at: 2, layer: 2, head: 1, depth: 2 },
  coords: { ablated_at: over(['ablated_at'], ['anywhere', 'rhs 2']), layer: over(['layer'], [0, 1]), head: over(['head'], [0]), depth: over(['depth'], [1, 2]) },
  variables: {
    lost: over(['ablated_at', 'layer', 'head', 'depth'], [0, 0.3, 0, 0.8, null, 0, null, 0.5]),
    n: over(['ablated_at', 'depth'], [20, 30, null, 30]),
    drop: over(['depth'], [0, 0.55]),
    drop_low: over(['depth'], [0, 0.5]),
    drop_high: over(['depth'], [0, 0.61]),
  },
  attrs: { step: 100 },
  provenance: { run: '', step: 100, n: 50, seed: 0, interval: '', note: '' },
  command: '',
  python: '',
};

it('a head is taken out everywhere until a position of the chain is chosen', () => {
  expect(positionsOf(body)).toEqual(['anywhere', 'rhs 2']);
  expect([knownPosition(body, ''), knownPosition(body, 'rhs 2'), knownPosition(body, 'rhs 9')]).toEqual(['anywhere', 'rhs 2', 'anywhere']);
  expect([wordsOfPosition('anywhere'), wordsOfPosition('rhs 2')]).toEqual(['everywhere', 'at rhs 2']);
});

it('a position is shown for the depths whose chains have it', () => {
  expect(depthsAt(body, 'anywhere')).toEqual([1, 2]);
  expect(depthsAt(body, 'rhs 2')).toEqual([2]);
  expect(lostBy(body, 'rhs 2', 2)).toEqual([0.5, 0]); // the last layer first
});

it('the head that costs most is named, and none where nothing is lost', () => {
  expect(costliest(body, 'anywhere', 2)).toEqual({ head: 'L1.H0', lost: 0.8 });
  expect(costliest(body, 'anywhere', 1)).toBeNull();
});

it('means by depth have their intervals and counts within the bars', () => {
  expect(depthBars(body)[1]).toEqual({ label: 'depth 2', value: 0.55, low: 0.5, high: 0.61, n: 30 });
  expect(barLimit(body)).toBe(0.7);
});

it('names the head that costs most, and the depths at which none costs anything', () => {
  expect(tellCostliest(body, 'anywhere')).toBe('Taken out everywhere, L1.H0 costs most: 80 points at depth 2; no head costs anything at depth 1.');
});
