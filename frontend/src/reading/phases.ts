/** Checkpoints by the phases of a run. */
import type { RunSummary } from '../api/client';

/** The last saved step of the heuristic phase, or where there is none the first step. */
export function endOfHeuristic(run: RunSummary | null): number {
  const phase = run?.phases.find(({ name }) => name === 'heuristic');
  const inside = run?.steps.filter((step) => phase && step >= phase.first_step && step <= phase.last_step) ?? [];
  return inside.at(-1) ?? run?.steps[0] ?? 0;
}
