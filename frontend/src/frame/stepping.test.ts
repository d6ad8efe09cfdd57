import { describe, expect, it } from 'vitest';
import { moveBy, phaseName, fractionOf, stepAtFraction, stepForAddress, stepForKey, valueText, type Scale } from './stepping';

const STEPS = [0, 2, 6, 11, 100, 200, 1600, 1800, 3700];
const PHASES = [
  { name: 'random', first_step: 0, last_step: 100, accuracy: 0.06 },
  { name: 'heuristic', first_step: 200, last_step: 1600, accuracy: 0.55 },
  { name: 'systematic', first_step: 2000, last_step: 3700, accuracy: 1 },
];
const SCALES: Scale[] = ['log', 'linear'];

describe('places on the slider', () => {
  it.each(SCALES)('run from 0 to 1 in the order of the steps (%s)', (scale) => {
    const fractions = STEPS.map((step) => fractionOf(step, 3700, scale));
    expect(fractions[0]).toBe(0);
    expect(fractions.at(-1)).toBe(1);
    expect(fractions).toEqual(fractions.toSorted((first, second) => first - second));
    expect(new Set(fractions).size).toBe(STEPS.length);
  });
  it.each(SCALES)('lead back to the step that lies there (%s)', (scale) => {
    for (const step of STEPS) expect(stepAtFraction(STEPS, fractionOf(step, 3700, scale), scale)).toBe(step);
    expect(stepAtFraction(STEPS, -3, scale)).toBe(0);
    expect(stepAtFraction(STEPS, 7, scale)).toBe(3700);
  });
  it('exist for a run with one checkpoint and with none', () => {
    expect(fractionOf(0, 0, 'log')).toBe(0);
    expect(stepAtFraction([0], 0.5, 'log')).toBe(0);
    expect(stepAtFraction([], 0.5, 'log')).toBe(0);
  });
});

describe('keys', () => {
  it('move one checkpoint, five with Shift, and to the ends, and stay within them', () => {
    const press = (key: string, step: number, shift = false): number | null => stepForKey(key, shift, STEPS, step);
    expect(press('ArrowRight', 0)).toBe(2);
    expect(press('ArrowLeft', 200)).toBe(100);
    expect(press('ArrowRight', 0, true)).toBe(200);
    expect(press('ArrowLeft', 6, true)).toBe(0);
    expect(press('ArrowRight', 3700)).toBe(3700);
    expect(press('Home', 200)).toBe(0);
    expect(press('End', 200)).toBe(3700);
    expect(press('x', 200)).toBeNull();
  });
  it('that undo each other lead back, away from the ends', () => {
    for (const step of STEPS.slice(1, -1)) expect(moveBy(STEPS, moveBy(STEPS, step, 1), -1)).toBe(step);
  });
});

describe('words', () => {
  it('name the phase, or what a step lies between', () => {
    expect(phaseName(PHASES, 100)).toBe('random');
    expect(phaseName(PHASES, 1800)).toBe('between heuristic and systematic');
    expect(phaseName(PHASES, 5000)).toBe('after systematic');
    expect(phaseName([], 100)).toBe('');
  });
  it('say where the slider stands', () => {
    expect(valueText(STEPS, 3700, PHASES)).toBe('step 3,700 of 3,700, systematic');
    expect(valueText(STEPS, 2, [])).toBe('step 2 of 3,700');
  });
  it('leave the last checkpoint unnamed in the address, so that a growing run is followed', () => {
    expect(stepForAddress(STEPS, 3700)).toBeNull();
    expect(stepForAddress(STEPS, 200)).toBe(200);
  });
});
