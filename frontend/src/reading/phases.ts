/** Checkpoints by the phases of a run. */
import type { RunSummary } from '../api/client';

/** The last saved step of the heuristic phase, or where there is none the first step. */
export function endOfHeuristic(run: RunSummary | null): number {
  const phase = run?.phases.find(({ name }) => name === 'heuristic');
  const inside = run?.steps.filter((step) => phase && step >= phase.first_step && step <= phase.last_step) ?? [];
  return inside.at(-1) ?? run?.steps[0] ?? 0;
}

/** A saved step in the midst of a phase, or a given fraction of the way through it; null where the run has no such phase or saved nothing of it. */
export function stepWithin(run: RunSummary, phase: string, fraction = 0.5): number | null {
  const span = run.phases.find((found) => found.name === phase);
  const kept = run.steps.filter((step) => span && span.first_step <= step && step <= span.last_step);
  return kept[Math.min(kept.length - 1, Math.floor(kept.length * fraction))] ?? null;
}
