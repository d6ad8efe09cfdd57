import { describe, expect, it } from 'vitest';
import { keepApart } from './labels';

const label = (key: string, x: number, y: number) => ({ key, text: 'H0 H3 …', x, y });

describe('labels of arrows', () => {
  it('stay where they are when none touch', () => {
    const labels = [label('a', 10, 50), label('b', 100, 50), label('c', 10, 80)];
    expect(keepApart(labels)).toEqual(labels);
  });
  it('stand above each other where they would lie on each other', () => {
    const heights = keepApart([label('a', 10, 50), label('b', 30, 52), label('c', 20, 50)]).map(({ y }) => y);
    expect(heights[0]).toBe(50);
    const gaps = [...heights].sort((one, other) => one - other).map((y, index, all) => y - (all[index - 1] ?? -Infinity));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(11);
  });
});
