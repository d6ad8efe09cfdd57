/** Colours that everyone can tell apart: viridis for amounts, blue to orange around zero, never red against green. */
import { interpolateRgbBasis } from 'd3-interpolate';
import { interpolateViridis } from 'd3-scale-chromatic';

export type ScaleName = 'sequential' | 'diverging';
export type Limits = readonly [number, number];

const blueOrange = interpolateRgbBasis(['#0b4f8a', '#5b9bd0', '#f2f2f2', '#f2a65a', '#a8500a']);

/** Colours of series, in this order (Okabe and Ito). */
export const SERIES = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f7f7f', '#000000'] as const;

/** The colour of a value on a scale with fixed limits; missing values have none. */
export function colourOf(value: number | null, scale: ScaleName, limits: Limits): string | null {
  if (value === null || Number.isNaN(value)) return null;
  const share = Math.min(1, Math.max(0, (value - limits[0]) / (limits[1] - limits[0] || 1)));
  return scale === 'sequential' ? interpolateViridis(share) : blueOrange(share);
}

/** Black or white, whichever can be read on a colour. */
export function inkOn(colour: string): string {
  const parts = /(\d+)\D+(\d+)\D+(\d+)/.exec(colour) ?? hex(colour);
  const [red, green, blue] = [1, 2, 3].map((index) => Number(parts?.[index] ?? 0) / 255);
  return 0.299 * (red ?? 0) + 0.587 * (green ?? 0) + 0.114 * (blue ?? 0) > 0.55 ? '#000000' : '#ffffff';
}

function hex(colour: string): (string | number)[] {
  return [0, ...[1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16))];
}
