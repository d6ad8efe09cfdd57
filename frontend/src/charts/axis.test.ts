import { describe, expect, test } from 'vitest';
import { linearAxis, logAxis, spread, thinLabels, thinTicks, wholeTicks } from './axis';

const STEPS = [0, 1, 10, 100, 1000, 12000];

describe('an axis', () => {
  test.each([
    ['linear', linearAxis([0, 12000], [50, 650])],
    ['log from zero', logAxis(STEPS, [50, 650])],
    ['log without zero', logAxis(STEPS.slice(1), [50, 650])],
    ['log, drawn from right to left', logAxis(STEPS, [650, 50])],
  ])('%s: value undoes place, and place only goes one way', (_, axis) => {
    const values = [0.2, 0.7, 1, 3, 10, 77, 500, 12000];
    for (const value of values) expect(axis.value(axis.place(value))).toBeCloseTo(value, 6);
    const places = values.map(axis.place);
    const direction = Math.sign((places[1] ?? 0) - (places[0] ?? 0));
    places.slice(1).forEach((place, index) => expect(Math.sign(place - (places[index] ?? 0))).toBe(direction));
  });

  test('logarithmic: equal factors are equal lengths, and the last value is at the end', () => {
    const axis = logAxis(STEPS, [0, 400]);
    expect(axis.place(100) - axis.place(10)).toBeCloseTo(axis.place(10) - axis.place(1), 9);
    expect(axis.place(12000)).toBeCloseTo(400, 9);
  });

  test('logarithmic: zero has the first place, apart from the least positive value', () => {
    const axis = logAxis(STEPS, [0, 400]);
    expect(axis.place(0)).toBe(0);
    expect(axis.value(0)).toBe(0);
    expect(axis.place(1)).toBeGreaterThan(20);
    expect(axis.ticks(6)[0]).toBe(0);
    expect(logAxis([5, 50], [0, 400]).ticks(6)).not.toContain(0);
  });

  test.each([2, 4, 6, 12])('logarithmic: about %i ticks, in order, none beyond the values', (count) => {
    const ticks = logAxis(STEPS, [0, 400]).ticks(count);
    expect(ticks.length).toBeLessThanOrEqual(count + 1);
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect([...ticks].sort((one, other) => one - other)).toEqual(ticks);
    for (const tick of ticks) expect(tick).toBeLessThanOrEqual(12000);
  });

  test('of a single value still has places', () => {
    expect(Number.isFinite(linearAxis([3, 3], [0, 10]).place(3))).toBe(true);
    expect(Number.isFinite(logAxis([7], [0, 10]).place(7))).toBe(true);
    expect(Number.isFinite(logAxis([0], [0, 10]).place(0))).toBe(true);
  });
});

describe('labels', () => {
  test('are all written where there is room', () => {
    expect(thinLabels(5, 20, 13)).toEqual([0, 1, 2, 3, 4]);
  });

  test.each([
    [400, 2.8, 38],
    [67, 8, 13],
    [80, 3, 13],
  ])('%i of them with %f pixels each never touch', (count, room, needed) => {
    const shown = thinLabels(count, room, needed);
    expect(shown.length).toBeGreaterThan(1);
    shown.slice(1).forEach((index, before) => expect((index - (shown[before] ?? 0)) * room).toBeGreaterThanOrEqual(needed));
  });

  test('that are pointed out stay, and their neighbours make room', () => {
    const shown = thinLabels(100, 5, 20, new Set([37, 200]));
    expect(shown).toContain(37);
    expect(shown).not.toContain(200);
    for (const index of shown) if (index !== 37) expect(Math.abs(index - 37) * 5).toBeGreaterThanOrEqual(20);
  });

  test('of ticks do not overlap', () => {
    const kept = thinTicks([0, 1, 2, 5, 10, 100], (tick) => tick * 3, () => 10);
    expect(kept).toEqual([0, 10, 100]);
  });
});

describe('names at the ends of curves', () => {
  test('stay where they are when they are apart', () => {
    expect(spread([10, 50, 90], 14, [0, 100])).toEqual([10, 50, 90]);
  });

  test('move apart in their order and stay inside', () => {
    const moved = spread([98, 97, 99, 3], 14, [0, 100]);
    const order = [3, 1, 0, 2].map((index) => moved[index] ?? 0);
    order.slice(1).forEach((place, index) => expect(place - (order[index] ?? 0)).toBeGreaterThanOrEqual(14 - 1e-9));
    expect(Math.max(...moved)).toBeLessThanOrEqual(100);
    expect(Math.min(...moved)).toBeGreaterThanOrEqual(0);
  });
});

describe('ticks of whole numbers', () => {
  test('have no fractions, those of others keep theirs', () => {
    expect(wholeTicks([0, 0.5, 1, 1.5, 2], [0, 2, null, undefined])).toEqual([0, 1, 2]);
    expect(wholeTicks([0, 0.5, 1], [0, 0.25])).toEqual([0, 0.5, 1]);
    expect(wholeTicks([0, 0.5, 1], [])).toEqual([0, 0.5, 1]);
  });
});
