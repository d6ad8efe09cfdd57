/** What is nearest to a place. */

export interface Place {
  x: number;
  y: number;
}
export type Direction = 'left' | 'right' | 'up' | 'down';

/** The index of the value nearest to `wanted`, -1 when there are none. */
export function nearestIndex(values: readonly number[], wanted: number): number {
  let best = -1;
  values.forEach((value, index) => {
    if (best < 0 || Math.abs(value - wanted) < Math.abs((values[best] ?? 0) - wanted)) best = index;
  });
  return best;
}

/** The index of the point nearest to a place, not farther than `reach`, else -1. */
export function nearestPoint(points: readonly Place[], place: Place, reach = Infinity): number {
  let best = -1;
  let least = reach * reach;
  points.forEach((point, index) => {
    const distance = (point.x - place.x) ** 2 + (point.y - place.y) ** 2;
    if (distance <= least && (best < 0 || distance < least)) {
      best = index;
      least = distance;
    }
  });
  return best;
}

/** The next point in a direction (y grows downwards): near, and more along than aside. Where nothing lies that way, the point itself.
Points in one place follow one another by index, so that each can be reached. */
export function nextPoint(points: readonly Place[], from: number, direction: Direction): number {
  const start = points[from];
  if (!start) return points.length ? 0 : -1;
  const [along, aside] = direction === 'left' || direction === 'right' ? (['x', 'y'] as const) : (['y', 'x'] as const);
  const sign = direction === 'right' || direction === 'down' ? 1 : -1;
  let best = from;
  let least = Infinity;
  points.forEach((point, index) => {
    const ahead = sign * (point[along] - start[along]);
    const off = Math.abs(point[aside] - start[aside]);
    const hidden = ahead === 0 && off === 0 && sign * (index - from) > 0;
    if (index === from || (!hidden && (ahead <= 0 || off > 2 * ahead))) return;
    const cost = hidden ? Math.abs(index - from) * 1e-9 : ahead + 2 * off;
    if (cost < least) [best, least] = [index, cost];
  });
  return best;
}
