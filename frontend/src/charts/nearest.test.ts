import { expect, test } from 'vitest';
import { nearestIndex, nearestPoint, nextPoint, type Direction, type Place } from './nearest';

const CROSS: Place[] = [
  { x: 0, y: 0 },
  { x: 10, y: 0 },
  { x: -10, y: 0 },
  { x: 0, y: 10 },
  { x: 0, y: -10 },
];

test('the nearest value, and none among none', () => {
  expect(nearestIndex([0, 10, 100], 40)).toBe(1);
  expect(nearestIndex([0, 10, 100], 1e9)).toBe(2);
  expect(nearestIndex([], 3)).toBe(-1);
});

test('the nearest point is the one no other is nearer than, within reach', () => {
  const points = Array.from({ length: 60 }, (_, index) => ({ x: (index * 37) % 61, y: (index * 53) % 59 }));
  const place = { x: 20.2, y: 30.7 };
  const distances = points.map((point) => Math.hypot(point.x - place.x, point.y - place.y));
  expect(distances[nearestPoint(points, place)]).toBe(Math.min(...distances));
  expect(nearestPoint(points, { x: 500, y: 500 }, 24)).toBe(-1);
  expect(nearestPoint([], place)).toBe(-1);
});

test.each<[Direction, number]>([
  ['right', 1],
  ['left', 2],
  ['down', 3],
  ['up', 4],
])('from the middle, %s leads to point %i', (direction, expected) => {
  expect(nextPoint(CROSS, 0, direction)).toBe(expected);
});

test('where nothing lies that way one stays', () => {
  expect(nextPoint(CROSS, 1, 'right')).toBe(1);
  expect(nextPoint([], 0, 'up')).toBe(-1);
});

test('points in one place can all be reached, and left again', () => {
  const points = [{ x: 5, y: 5 }, { x: 5, y: 5 }, { x: 5, y: 5 }, { x: 9, y: 5 }]; // prettier-ignore
  expect(nextPoint(points, 0, 'right')).toBe(1);
  expect(nextPoint(points, 1, 'right')).toBe(2);
  expect(nextPoint(points, 2, 'right')).toBe(3);
  expect(nextPoint(points, 2, 'left')).toBe(1);
});
