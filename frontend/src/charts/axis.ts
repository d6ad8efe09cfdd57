/** Places along an axis, and which labels there is room for. */
import { scaleLinear } from 'd3-scale';
import type { Limits } from './colour';

export interface Axis {
  place(value: number): number; // in pixels
  value(place: number): number; // the inverse of place
  ticks(count: number): number[];
}

export function linearAxis(limits: Limits, range: Limits): Axis {
  const span = limits[1] > limits[0] ? limits : ([limits[0] - 0.5, limits[0] + 0.5] as const);
  const scale = scaleLinear([span[0], span[1]], [range[0], range[1]]);
  return { place: (value) => scale(value), value: (place) => scale.invert(place), ticks: (count) => scale.ticks(count) };
}

/** A logarithmic axis over `values`, none below zero. Zero, when it is among them, has a place of its own at the start; from there to the
least positive value the axis is linear, so that every number has one place. */
export function logAxis(values: readonly number[], range: Limits): Axis {
  const positive = values.filter((value) => value > 0);
  const least = positive.length ? Math.min(...positive) : 1;
  const most = Math.max(least * 10 ** 0.1, ...positive);
  const length = range[1] - range[0];
  const gap = values.some((value) => value <= 0) ? Math.sign(length) * Math.min(36, Math.abs(length) * 0.1) : 0;
  const start = range[0] + gap;
  const decades = Math.log(most / least);
  return {
    place: (value) =>
      value >= least || !gap
        ? start + ((range[1] - start) * Math.log(Math.max(value, Number.MIN_VALUE) / least)) / decades
        : range[0] + (gap * Math.max(0, value)) / least,
    value: (place) => {
      const along = (place - start) / (range[1] - start);
      return along >= 0 || !gap ? least * Math.exp(along * decades) : Math.max(0, (least * (place - range[0])) / gap);
    },
    ticks: (count) => [...(gap ? [0] : []), ...logTicks(least, most, gap ? count - 1 : count)],
  };
}

function logTicks(least: number, most: number, count: number): number[] {
  const first = Math.floor(Math.log10(least));
  const last = Math.ceil(Math.log10(most));
  const exponents = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const inside = (value: number): boolean => value >= least * (1 - 1e-9) && value <= most * (1 + 1e-9);
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = exponents.flatMap((exponent) => factors.map((factor) => Number((factor * 10 ** exponent).toPrecision(6)))).filter(inside);
    if (ticks.length <= Math.max(2, count)) return ticks;
  }
  const every = Math.ceil(exponents.length / Math.max(1, count));
  return exponents.filter((_, index) => index % every === 0).map((exponent) => 10 ** exponent).filter(inside);
}

const STRIDES = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000];

/** Which of `count` labels to write when each has `room` pixels and wants `needed`; `kept` ones are written always, crowding out others. */
export function thinLabels(count: number, room: number, needed: number, kept: ReadonlySet<number> = new Set()): number[] {
  const wanted = Math.max(1, Math.ceil(needed / Math.max(room, 1e-6)));
  const stride = STRIDES.find((candidate) => candidate >= wanted) ?? wanted;
  const pointedOut = [...kept].filter((index) => index >= 0 && index < count).sort((one, other) => one - other);
  const shown = new Set<number>();
  for (const index of pointedOut) if (![...shown].some((other) => Math.abs(other - index) * room < needed)) shown.add(index);
  for (let index = 0; index < count; index += stride) {
    if (![...shown].some((other) => kept.has(other) && Math.abs(other - index) * room < needed)) shown.add(index);
  }
  return [...shown].sort((one, other) => one - other);
}

/** The ticks without fractions where every value is whole: there is no half a training example. */
export function wholeTicks(ticks: readonly number[], values: readonly (number | null | undefined)[]): number[] {
  const known = values.filter((value) => value !== null && value !== undefined && Number.isFinite(value));
  return known.length && known.every(Number.isInteger) ? ticks.filter(Number.isInteger) : [...ticks];
}

/** The ticks whose labels do not run into the one before: first come, first kept. */
export function thinTicks(ticks: readonly number[], place: (tick: number) => number, width: (tick: number) => number): number[] {
  const kept: number[] = [];
  let end = -Infinity;
  for (const tick of [...ticks].sort((one, other) => place(one) - place(other))) {
    if (place(tick) - width(tick) / 2 < end) continue;
    kept.push(tick);
    end = place(tick) + width(tick) / 2 + 6;
  }
  return kept;
}

/** Move labels apart along a line so that none is nearer than `gap` to the next, each as near to its own place as that allows. */
export function spread(places: readonly number[], gap: number, limits: Limits): number[] {
  const order = places.map((_, index) => index).sort((one, other) => (places[one] ?? 0) - (places[other] ?? 0));
  const moved = [...places];
  let before = limits[0] - gap;
  for (const index of order) before = moved[index] = Math.max(moved[index] ?? 0, before + gap);
  let after = Math.max(limits[1], limits[0] + gap * (places.length - 1)) + gap;
  for (const index of order.reverse()) after = moved[index] = Math.min(moved[index] ?? 0, after - gap);
  return moved;
}
