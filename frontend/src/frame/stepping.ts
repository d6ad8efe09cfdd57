/** Moving along the saved checkpoints of a run, and where each lies on the slider. */
import type { RunSummary } from '../api/client';

export type Scale = 'log' | 'linear';
type Phase = RunSummary['phases'][number];

/** Where a step lies between the ends of the slider, 0 to 1. On the logarithmic scale 0 keeps its place at the left. */
export function fractionOf(step: number, last: number, scale: Scale): number {
  if (last <= 0) return 0;
  const fraction = scale === 'log' ? Math.log1p(step) / Math.log1p(last) : step / last;
  return Math.min(1, Math.max(0, fraction));
}

/** The saved step that is drawn nearest to a place on the slider. */
export function stepAtFraction(steps: readonly number[], fraction: number, scale: Scale): number {
  const last = steps.at(-1) ?? 0;
  const distance = (step: number): number => Math.abs(fractionOf(step, last, scale) - fraction);
  return steps.reduce((best, step) => (distance(step) < distance(best) ? step : best), steps[0] ?? 0);
}

/** `by` checkpoints further, within the ends. */
export function moveBy(steps: readonly number[], step: number, by: number): number {
  const index = Math.max(0, steps.indexOf(step));
  return steps[Math.min(steps.length - 1, Math.max(0, index + by))] ?? step;
}

/** The step that a key asks for; null for keys that mean nothing here. */
export function stepForKey(key: string, shift: boolean, steps: readonly number[], step: number): number | null {
  const stride = shift ? 5 : 1;
  if (key === 'ArrowRight' || key === 'ArrowUp') return moveBy(steps, step, stride);
  if (key === 'ArrowLeft' || key === 'ArrowDown') return moveBy(steps, step, -stride);
  if (key === 'PageUp') return moveBy(steps, step, 5);
  if (key === 'PageDown') return moveBy(steps, step, -5);
  if (key === 'Home') return steps[0] ?? step;
  if (key === 'End') return steps.at(-1) ?? step;
  return null;
}

/** What goes into the address: the last checkpoint is not named, so that the slider stays at the end of a run that grows. */
export function stepForAddress(steps: readonly number[], step: number): number | null {
  return step === steps.at(-1) ? null : step;
}

/** The phase a step lies in; between two phases there is none. */
function phaseAt(phases: readonly Phase[], step: number): Phase | null {
  return phases.find((phase) => phase.first_step <= step && step <= phase.last_step) ?? null;
}

/** In words: 'systematic', 'between heuristic and systematic', or empty where no phases are known. */
export function phaseName(phases: readonly Phase[], step: number): string {
  const inside = phaseAt(phases, step);
  if (inside) return inside.name;
  const before = phases.findLast((phase) => phase.last_step < step);
  const after = phases.find((phase) => phase.first_step > step);
  if (before && after) return `between ${before.name} and ${after.name}`;
  return before ? `after ${before.name}` : '';
}

/** For those who hear the slider: 'step 3,700 of 3,700, systematic'. */
export function valueText(steps: readonly number[], step: number, phases: readonly Phase[]): string {
  const last = steps.at(-1) ?? 0;
  const phase = phaseName(phases, step);
  return `step ${step.toLocaleString('en')} of ${last.toLocaleString('en')}${phase ? `, ${phase}` : ''}`;
}
