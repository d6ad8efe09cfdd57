/** At most so many of a run's steps, evenly chosen, always with the first and the last: a run may keep hundreds. */
export function thinSteps(steps: readonly number[], most: number): number[] {
  if (steps.length <= most) return [...steps];
  const chosen = Array.from({ length: most }, (_, index) => Math.round((index * (steps.length - 1)) / (most - 1)));
  return chosen.map((index) => steps[index] ?? 0);
}

/** Which checkpoints a panel has, where it leaves some out: `3 of 26 checkpoints: steps 0, 1,600 and 3,700.` Else nothing. */
export function tellThinned(shown: readonly number[], all: readonly number[]): string {
  if (shown.length >= all.length) return '';
  const steps = shown.map((step) => step.toLocaleString('en'));
  return `${shown.length} of ${all.length} checkpoints: steps ${steps.slice(0, -1).join(', ')} and ${steps.at(-1)}.`;
}
