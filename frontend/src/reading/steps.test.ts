import { expect, it } from 'vitest';
import { thinSteps } from './steps';

it('thins many steps to distinct ones, with the first and the last, and leaves few as they are', () => {
  const many = Array.from({ length: 571 }, (_, index) => 10 * index);
  const thin = thinSteps(many, 60);
  expect(new Set(thin).size).toBe(60);
  expect([thin[0], thin.at(-1)]).toEqual([0, 5700]);
  expect(thin.every((step) => many.includes(step))).toBe(true);
  expect(thinSteps([1, 5], 2)).toEqual([1, 5]);
});
