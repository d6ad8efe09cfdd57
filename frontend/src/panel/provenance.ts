/** Where numbers come from, as one line: 'binding-laptop · step 3,700 · n = 240 · seed 0 · 95 % Wilson'. */
import type { Body, Provenance } from '../api/body';

export function showProvenance(provenance: Provenance): string {
  const { run, step, n, seed, interval, note } = provenance;
  return [
    run,
    step === null || step === undefined ? '' : `step ${step.toLocaleString('en')}`,
    n === null || n === undefined ? '' : `n = ${n.toLocaleString('en')}`,
    seed === null || seed === undefined ? '' : `seed ${seed}`,
    interval,
    note,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** Whether something that was read is a labelled dataset: some panels show other things. */
export function isBody(content: unknown): content is Body {
  return typeof content === 'object' && content !== null && 'sizes' in content && 'variables' in content && 'provenance' in content;
}
