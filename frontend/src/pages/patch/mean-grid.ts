/** What the mean grid shows, in a sentence of its numbers. */
import { labelsOf, number, type At, type Body } from '../../api/body';
import { formatPercent } from '../../charts/format';
import { METRICS, tellValue, type Metric } from './metrics';
import { acrossOf, kindOf } from './sites';

/** The cell where most happens; of what is kept of the base's answer, the cell where least is. */
export function tellHighest(body: Body, metric: Metric, columns: readonly string[], at: (layer: string, across: string) => At): string {
  const cells = labelsOf(body, 'layer').flatMap((layer) => columns.map((across) => ({ layer, across, value: number(body, metric, at(String(layer), across)) })));
  const sign = metric === 'kept' ? -1 : 1;
  const size = (value: number): number => (METRICS[metric].scale === 'diverging' ? Math.abs(value) : sign * value);
  const known = cells.flatMap((cell) => (cell.value === null ? [] : [{ ...cell, value: cell.value }]));
  const most = known.toSorted((one, other) => size(other.value) - size(one.value))[0];
  if (!most) return '';
  const { layer, across } = most;
  const where = { heads: `in L${layer}.H${across}`, mlps: `in the MLP of L${layer}`, chain: `at ${across}, entering L${layer}`, residual: `at ${across}, entering L${layer}` }[kindOf(body)];
  return `${METRICS[metric].title} is ${METRICS[metric].scale === 'diverging' ? 'furthest from 0' : sign > 0 ? 'highest' : 'lowest'} ${where}: ${tellValue(metric, most.value)}.`;
}

/** Where mixing depths hides most, at the step of which the depths are measured: the best layer over all depths, and within one. */
export function tellMixing(mixed: Body, apart: Body): string {
  const step = apart.provenance.step;
  if (step === null || step === undefined || !labelsOf(mixed, 'step').includes(step)) return '';
  const best = (body: Body, position: string, more: At): number => Math.max(0, ...labelsOf(body, 'layer').map((layer) => number(body, 'success', { layer, position, ...more }) ?? 0));
  const hidden = acrossOf(mixed)
    .filter((name) => /^rhs [2-9]|^query/.test(name))
    .flatMap((position) => labelsOf(apart, 'depth').map((depth) => ({ position, depth, within: best(apart, position, { depth }), all: best(mixed, position, { step, direction: 'noising' }) })))
    .sort((one, other) => other.within - other.all - (one.within - one.all))[0];
  if (!hidden || hidden.within - hidden.all < 0.1) return '';
  const { position, depth, within, all } = hidden;
  return `At step ${step.toLocaleString('en')} the best layer at ${position} succeeds in ${formatPercent(all)} over all depths mixed and in ${formatPercent(within)} at depth ${depth} alone, for the value passes there in another layer at each depth.`;
}
