/** Playing through the saved checkpoints. */
import { currentRun, currentStep, go } from '../state/view.svelte';
import { moveBy, stepForAddress } from './stepping';

export const SPEEDS = [1, 2, 4, 8] as const; // checkpoints a second

export const player: { playing: boolean; speed: number } = $state({ playing: false, speed: 2 });

/** Start from the beginning where the end is reached already. */
export function togglePlay(): void {
  const steps = currentRun()?.steps ?? [];
  if (!player.playing && currentStep() === steps.at(-1)) go({ step: steps[0] ?? null }, true);
  player.playing = !player.playing;
}

/** Move on while playing. Call while the page starts. */
export function followPlayer(): void {
  $effect(() => {
    if (!player.playing) return;
    const timer = setInterval(() => {
      const steps = currentRun()?.steps ?? [];
      const next = moveBy(steps, currentStep(), 1);
      go({ step: stepForAddress(steps, next) }, true);
      if (next === steps.at(-1)) player.playing = false;
    }, 1000 / player.speed);
    return () => clearInterval(timer);
  });
}
