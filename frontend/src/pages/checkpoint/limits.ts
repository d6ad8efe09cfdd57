/** Limits that many checkpoints share, so that bars can be compared while the slider moves. */
import type { Limits } from '../../charts/colour';
import type { Bar } from '../../charts/types';

const LADDER = [0.25, 0.5, 1, 2, 4, 8];

/** From a quarter of a rung below zero to the first rung that holds every bar with its interval. */
export function niceLimits(bars: Bar[]): Limits {
  const most = Math.max(...bars.map((bar) => Math.max(bar.high ?? 0, bar.value ?? 0)), 0);
  const least = Math.min(...bars.map((bar) => Math.min(bar.low ?? 0, bar.value ?? 0)), 0);
  const top = LADDER.find((rung) => rung >= most && rung / 4 >= -least) ?? LADDER[LADDER.length - 1] ?? 1;
  return [-top / 4, top];
}
