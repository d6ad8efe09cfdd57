import { expect, it } from 'vitest';
import { tellThinned, thinSteps } from './steps';

it('thins many steps to distinct ones, with the first and the last, and leaves few as they are', () => {
  const many = Array.from({ length: 571 }, (_, index) => 10 * index);
  const thin = thinSteps(many, 60);
  expect(new Set(thin).size).toBe(60);
  expect([thin[0], thin.at(-1)]).toEqual([0, 5700]);
  expect(thin.every((step) => many.includes(step))).toBe(true);
  expect(thinSteps([1, 5], 2)).toEqual([1, 5]);
});

it('says which steps are shown, where some are left out', () => {
  const all = [0, 100, 400, 1600, 3700];
  expect(tellThinned(thinSteps(all, 3), all)).toBe('3 of 5 checkpoints: steps 0, 400 and 3,700.');
  expect(tellThinned(all, all)).toBe('');
});
