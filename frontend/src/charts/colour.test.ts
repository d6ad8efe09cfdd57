import { describe, expect, test } from 'vitest';
import { characterColour, colourOf, contrast, inkOn, linear, luminance, ON_DARK, rgb, SERIES, type Limits } from './colour';

const UNIT: Limits = [0, 1];
const AROUND: Limits = [-1, 1];
const FRACTIONS = Array.from({ length: 101 }, (_, index) => index / 100);

describe('scales of amounts', () => {
  test.each(['sequential', 'cividis'] as const)('%s grows lighter with the value, by steps one can see', (scale) => {
    const lightness = FRACTIONS.map((fraction) => lab(linear(colourOf(fraction, scale, UNIT) ?? ''))[0]);
    for (let index = 1; index < lightness.length; index += 1) expect(lightness[index]).toBeGreaterThan(lightness[index - 1] ?? 0);
    expect((lightness[100] ?? 0) - (lightness[0] ?? 0)).toBeGreaterThan(60);
  });

  test.each(['sequential', 'cividis', 'diverging'] as const)('%s keeps values outside the limits at its ends', (scale) => {
    expect(colourOf(-7, scale, AROUND)).toBe(colourOf(-1, scale, AROUND));
    expect(colourOf(7, scale, AROUND)).toBe(colourOf(1, scale, AROUND));
    expect(colourOf(-7, scale, AROUND)).not.toBe(colourOf(7, scale, AROUND));
  });

  test('a missing value has no colour, and limits without extent have one', () => {
    expect(colourOf(null, 'sequential', UNIT)).toBeNull();
    expect(colourOf(Number.NaN, 'diverging', AROUND)).toBeNull();
    expect(colourOf(2, 'sequential', [2, 2])).toBe(colourOf(0, 'sequential', UNIT));
  });
});

describe('the scale around zero', () => {
  test('is a grey at zero, whatever the limits', () => {
    for (const limits of [AROUND, [-0.2, 1], [0, 3], [-5, 0]] as Limits[]) {
      const [red, green, blue] = rgb(colourOf(0, 'diverging', limits) ?? '');
      expect([green, blue]).toEqual([red, red]);
    }
  });

  test('is blue below and orange above, as far from grey in lightness on both sides', () => {
    for (const fraction of FRACTIONS.slice(5)) {
      const [below, above] = [colourOf(-fraction, 'diverging', AROUND) ?? '', colourOf(fraction, 'diverging', AROUND) ?? ''];
      expect(rgb(below)[2]).toBeGreaterThan(rgb(below)[0]);
      expect(rgb(above)[0]).toBeGreaterThan(rgb(above)[2]);
      expect(Math.abs(lab(linear(below))[0] - lab(linear(above))[0])).toBeLessThan(5);
    }
  });

  test('gives equal values equal colours when only one side of the limits is shorter', () => {
    expect(colourOf(0.5, 'diverging', [-0.2, 1])).toBe(colourOf(0.5, 'diverging', AROUND));
  });
});

describe('ink', () => {
  test('can be read on every cell', () => {
    for (const scale of ['sequential', 'cividis', 'diverging'] as const) {
      for (const fraction of FRACTIONS) {
        const colour = colourOf(2 * fraction - 1, scale, AROUND) ?? '';
        expect(contrast(colour, inkOn(colour))).toBeGreaterThanOrEqual(4.5);
      }
    }
  });

  test('contrast is 21 between black and white and 1 between equals', () => {
    expect(contrast('#000000', 'rgb(255, 255, 255)')).toBeCloseTo(21, 6);
    expect(contrast('#0072b2', '#0072b2')).toBe(1);
    expect(luminance('#ff0000') + luminance('#00ff00') + luminance('#0000ff')).toBeCloseTo(1, 9);
  });

  test.each([
    [false, '#ffffff'],
    [true, '#171b21'],
  ])('characters stand out from the page (dark: %s)', (dark, page) => {
    const colours = Array.from({ length: 26 }, (_, index) => characterColour(index, 26, dark));
    for (const colour of colours) expect(contrast(colour, page)).toBeGreaterThanOrEqual(2.7);
    expect(new Set(colours).size).toBe(26);
  });
});

test('series on dark paper stand out from it and from the phases behind them, three to one', () => {
  const bands = ['#98a1aa', '#f0b03c', '#5ab4ec'].map((phase) => mix(phase, '#181c20', 0.16));
  for (const colour of ON_DARK) for (const behind of ['#181c20', ...bands]) expect(contrast(colour, behind), `${colour} on ${behind}`).toBeGreaterThanOrEqual(3);
});

/** A colour laid over another. */
function mix(over: string, under: string, opacity: number): string {
  const [above, below] = [rgb(over), rgb(under)];
  return `rgb(${above.map((part, index) => 255 * (opacity * part + (1 - opacity) * (below[index] ?? 0))).join(' ')})`;
}

// How colours look without one kind of cone: matrices over linear light (Machado, Oliveira and Fernandes 2009, severity 1).
const SEEN = {
  'all cones': [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
};
const DISTANCE = 14; // CIE 1976 ΔE; about 2.3 is just noticeable side by side

describe.each(Object.entries(SEEN).flatMap(([name, matrix]) => [[name, 'light', SERIES, matrix], [name, 'dark', ON_DARK, matrix]] as const))('series seen with %s on %s paper', (_, _paper, SERIES, matrix) => {
  test(`every two differ by ΔE ≥ ${DISTANCE}`, () => {
    const seen = SERIES.map((colour) => lab(through([...matrix], linear(colour))));
    seen.forEach((one, first) =>
      seen.slice(first + 1).forEach((other, offset) => {
        const distance = Math.hypot(...one.map((part, axis) => part - (other[axis] ?? 0)));
        expect(distance, `${SERIES[first]} and ${SERIES[first + 1 + offset]}`).toBeGreaterThanOrEqual(DISTANCE);
      }),
    );
  });
});

function through(matrix: number[], colour: readonly number[]): number[] {
  return [0, 1, 2].map((row) => colour.reduce((sum, part, column) => sum + (matrix[3 * row + column] ?? 0) * part, 0));
}

/** CIE L*a*b* (D65) of linear red, green and blue. */
function lab(colour: readonly number[]): [number, number, number] {
  const [red = 0, green = 0, blue = 0] = colour.map((part) => Math.min(1, Math.max(0, part)));
  const [x, y, z] = [
    (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
    0.2126 * red + 0.7152 * green + 0.0722 * blue,
    (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
  ].map((part) => (part > 216 / 24389 ? Math.cbrt(part) : (part * 24389) / 27 / 116 + 16 / 116)) as [number, number, number];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
