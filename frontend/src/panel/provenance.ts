/** Where numbers come from, as one line: 'binding-laptop · step 3,700 · n = 240 · seed 0 · 95 % Wilson'. */
import type { Body, Provenance, Shown } from '../api/body';

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

/** The labels that a panel fixes: 'step 3,700', 'direction noising'; those that the provenance has too are left out. */
export function tellPart(shown: Shown | undefined, known: readonly string[] = []): string {
  return Object.entries(shown?.at ?? {})
    .flatMap(([name, label]) => (label === undefined || known.includes(name) ? [] : [`${name} ${[label].flat().map(written).join(', ')}`]))
    .join(' · ');
}

/** Where the part that is drawn comes from, as one line. */
export function showPart(body: Body, shown: Shown | undefined): string {
  return [showProvenance(body.provenance), tellPart(shown, body.provenance.step === null ? [] : ['step'])].filter(Boolean).join(' · ');
}

function written(label: unknown): string {
  return typeof label === 'number' ? label.toLocaleString('en') : String(label);
}
