/** Colours that everyone can tell apart: viridis for amounts, blue to orange around zero, never red against green. */
import { interpolateRgb, piecewise } from 'd3-interpolate';
import { interpolateCividis, interpolateViridis } from 'd3-scale-chromatic';

export type ScaleName = 'sequential' | 'cividis' | 'diverging';
export type Limits = readonly [number, number];
type Rgb = readonly [number, number, number]; // each from 0 to 1

const blueOrange = piecewise(interpolateRgb, ['#0a3f80', '#4f8fcf', '#f2f2f2', '#d9822b', '#6f3500']);

/** Colours of series, in this order: those of Okabe and Ito, with a grey for their yellow, which white paper swallows. The black one is drawn in the page's own ink. */
export const SERIES = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#6b6b6b', '#000000'] as const;

/** The same on dark paper, where phases lie behind curves: at least three to one against these. */
export const ON_DARK = ['#5ab4ec', '#ee6a2a', '#2fc59a', '#e3a0cb', '#f7c653', '#9bd8ff', '#899199', '#ffffff'] as const;

/** The colour of a series on the page, which is light or dark: `seriesColour(0)` is blue. */
export function seriesColour(index: number): string {
  const at = index % SERIES.length;
  return SERIES[at] === '#000000' ? 'var(--ink, CanvasText)' : `var(--series-${at}, ${SERIES[at]})`;
}

/** The colour of a value on a scale with fixed limits; missing values have none. Zero is the grey of a diverging scale. */
export function colourOf(value: number | null, scale: ScaleName, limits: Limits): string | null {
  if (value === null || Number.isNaN(value)) return null;
  const inside = Math.min(Math.max(value, limits[0]), limits[1]);
  if (scale === 'diverging') {
    const reach = Math.max(Math.abs(limits[0]), Math.abs(limits[1])) || 1;
    return blueOrange((1 + inside / reach) / 2);
  }
  const fraction = (inside - limits[0]) / (limits[1] - limits[0] || 1);
  return scale === 'cividis' ? interpolateCividis(fraction) : interpolateViridis(fraction);
}

/** Colours for groups that are marked by a character, in their order: the half of viridis that stands out from the page. */
export function characterColour(index: number, count: number, dark: boolean): string {
  const [from, to] = dark ? [0.42, 1] : [0, 0.58];
  return interpolateViridis(from + ((to - from) * index) / Math.max(1, count - 1));
}

/** Black or white, whichever can be read on a colour. */
export function inkOn(colour: string): string {
  return contrast(colour, '#000000') >= contrast(colour, '#ffffff') ? '#000000' : '#ffffff';
}

/** Contrast of two colours, from 1 to 21 (WCAG). */
export function contrast(first: string, second: string): number {
  const [low = 0, high = 0] = [luminance(first), luminance(second)].sort((one, other) => one - other);
  return (high + 0.05) / (low + 0.05);
}

/** Relative luminance, from 0 to 1 (WCAG). */
export function luminance(colour: string): number {
  const [red, green, blue] = linear(colour);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Red, green and blue in linear light. */
export function linear(colour: string): Rgb {
  return rgb(colour).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as unknown as Rgb;
}

/** Red, green and blue of `#rrggbb` or `rgb(…)`. */
export function rgb(colour: string): Rgb {
  const written = /^#([\da-f]{2})([\da-f]{2})([\da-f]{2})/i.exec(colour);
  const parts = written
    ? written.slice(1).map((part) => Number.parseInt(part, 16))
    : (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  return [(parts[0] ?? 0) / 255, (parts[1] ?? 0) / 255, (parts[2] ?? 0) / 255];
}
