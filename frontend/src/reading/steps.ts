/** At most so many of a run's steps, evenly chosen, always with the first and the last: a run may keep hundreds. */
export function thinSteps(steps: readonly number[], most: number): number[] {
  if (steps.length <= most) return [...steps];
  const chosen = Array.from({ length: most }, (_, index) => Math.round((index * (steps.length - 1)) / (most - 1)));
  return chosen.map((index) => steps[index] ?? 0);
}
