import { describe, expect, it } from 'vitest';
import { editDistance, nearestWord } from './near';

describe('the nearest word', () => {
  it('needs the fewest changes', () => {
    expect(nearestWord('pach', ['start', 'patch', 'program'])).toBe('patch');
    expect(nearestWord('binding-lapto', ['binding-plain', 'binding-laptop'])).toBe('binding-laptop');
    expect(nearestWord('x', [])).toBeNull();
  });
  it('is measured by a distance: symmetric, zero only for equals, never more than the longer word', () => {
    const words = ['', 'a', 'patch', 'path', 'catch', 'subspace'];
    for (const first of words)
      for (const second of words) {
        expect(editDistance(first, second)).toBe(editDistance(second, first));
        expect(editDistance(first, second) === 0).toBe(first === second);
        expect(editDistance(first, second)).toBeLessThanOrEqual(Math.max(first.length, second.length));
        expect(editDistance(first, second)).toBeGreaterThanOrEqual(Math.abs(first.length - second.length));
      }
    expect(editDistance('catch', 'path')).toBe(2);
  });
});
