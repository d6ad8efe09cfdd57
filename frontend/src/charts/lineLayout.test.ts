import { describe, expect, test } from 'vitest';
import { linearAxis } from './axis';
import { formatInterval, formatNumber, formatPercent, formatStep, nameLabel, shorten, showToken } from './format';
import { bandAt, bandColour, bandNames, curveOf, endOf, limitsOf, marksOf, placesOf, ribbonOf } from './lineLayout';

const across = linearAxis([0, 4], [0, 400]);
const up = linearAxis([0, 1], [100, 0]);
const GAPPED = { name: 'gapped', x: [0, 1, 2, 3, 4], y: [0, 0.5, null, 1, null], low: [0, 0.4, null, 0.9, null], high: [0.1, 0.6, null, 1, null] };

describe('names of bands', () => {
  const place = (x: number): number => 100 * x;
  test('stand over their bands, or move into the free room beside them', () => {
    const names = bandNames([{ name: 'random', from: 0, to: 0.2 }, { name: 'heuristic', from: 1, to: 3 }, { name: 'systematic', from: 3.8, to: 4 }], place, [0, 400]); // prettier-ignore
    expect(names.map(({ name }) => name)).toEqual(['random', 'heuristic', 'systematic']);
    expect(names[1]?.middle).toBe(200);
    expect(names[2]?.middle).toBeCloseTo(420 - 31);
  });
  test('never run into each other, whatever the bands', () => {
    for (let last = 0.1; last < 4; last += 0.1) {
      const bands = ['random', 'heuristic', 'systematic'].map((name, index) => ({ name, from: (index * last) / 3, to: ((index + 1) * last) / 3 }));
      const edges = bandNames(bands, place, [0, 100 * last]).map(({ name, middle }) => [middle - 3.1 * name.length, middle + 3.1 * name.length]);
      edges.slice(1).forEach(([start], index) => expect(start).toBeGreaterThan(edges[index]?.[1] ?? 0));
    }
  });
});

describe('a curve', () => {
  test('has a gap where a value is missing', () => {
    expect(curveOf(GAPPED, across, up)).toBe('M0,100L100,50M300,0Z');
    expect(ribbonOf(GAPPED, across, up).match(/M/g)).toHaveLength(2);
    expect(ribbonOf({ name: 'bare', x: [0], y: [1] }, across, up)).toBe('');
  });

  test('ends at its last value, and is read only where it has values', () => {
    expect(endOf(GAPPED)).toEqual({ x: 3, y: 1 });
    expect(endOf({ name: 'empty', x: [1], y: [null] })).toBeNull();
    expect(placesOf([GAPPED, { name: 'other', x: [3, 2.5], y: [1, 1] }])).toEqual([0, 1, 2.5, 3]);
  });

  test('has marks no nearer than asked', () => {
    expect(marksOf(GAPPED, across, up, 150).map((mark) => mark.x)).toEqual([0, 300]);
  });
});

describe('limits', () => {
  test('hold every value, interval and reference, unless they are given', () => {
    const [low, high] = limitsOf([{ name: 'a', x: [0, 1], y: [10, 12], low: [8, null], high: [11, 15] }], [{ y: 20 }], false);
    expect(low).toBeLessThanOrEqual(8);
    expect(high).toBeGreaterThanOrEqual(20);
    expect(limitsOf([GAPPED], [], false, [-1, 3])).toEqual([-1, 3]);
  });

  test('are the whole for fractions, and exist without any value', () => {
    expect(limitsOf([GAPPED], [], true)).toEqual([0, 1]);
    expect(limitsOf([], [], false)).toEqual([0, 1]);
  });
});

describe('bands', () => {
  const bands = [{ name: 'random', from: 0, to: 10 }, { name: 'Systematic phase', from: 10, to: 20 }]; // prettier-ignore
  test('hold their start; the last also its end', () => {
    expect([0, 10, 20, 21].map((x) => bandAt(bands, x)?.name)).toEqual(['random', 'Systematic phase', 'Systematic phase', undefined]);
  });
  test('have the colour of their phase', () => {
    expect(bandColour({ name: 'Systematic phase', from: 0, to: 1 }, 0)).toContain('--systematic');
  });
  test('that are no phases are coloured by weight, and only those that matter are named', () => {
    const spikes = [{ name: 'spike 1', from: 0, to: 1, weight: 'faint' as const }, { name: 'spike 2', from: 1, to: 2, weight: 'strong' as const }]; // prettier-ignore
    expect(spikes.map((band, index) => bandColour(band, index))).toEqual(['var(--ink-soft, GrayText)', 'var(--accent, Highlight)']);
    expect(bandNames(spikes, (x) => 100 * x, [0, 400]).map(({ name }) => name)).toEqual(['spike 2']);
  });
});

describe('words for numbers', () => {
  test.each([
    [12000, '12,000'],
    [-0.03124, '−0.0312'],
    [0, '0'],
    [null, 'missing'],
    [0.00002, '2.0e-5'],
  ])('%s is %s', (value, expected) => expect(formatNumber(value)).toBe(expected));

  test('percent, intervals and steps', () => {
    expect([0.9312, 0, 1, 0.9996].map(formatPercent)).toEqual(['93.1 %', '0 %', '100 %', '100 %']); // without idle digits
    expect(formatInterval(0.5, 0.4, 0.6, formatPercent)).toBe('50 % (40 % to 60 %)');
    expect(formatInterval(0.5, null, 0.6)).toBe('0.5');
    expect([950, 12000, 2e6].map(formatStep)).toEqual(['950', '12k', '2M']);
  });

  test('a label has the title of its axis once, and its place when it is not the only one', () => {
    expect(nameLabel(['a', '\n', 'a'], 2, 'token')).toBe('token a at 2');
    expect(nameLabel(['a', '\n', 'a'], 1, 'token')).toBe('token ↵');
    expect(nameLabel(['step 5'], 0, 'step')).toBe('step 5');
  });

  test('tokens can be seen, long names end in a mark', () => {
    expect([...'a\n '].map(showToken)).toEqual(['a', '↵', '␣']);
    expect(shorten('heuristic', 5)).toBe('heur…');
  });
});
