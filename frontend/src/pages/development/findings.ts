/** What the panels of this page show, in a sentence each that is computed of their numbers. */
import { labelsOf, number, numbers, type At, type Body, type Value } from '../../api/body';
import { formatNumber, formatPercent } from '../../charts/format';
import type { Series } from '../../charts/types';
import { stepsOf } from '../../reading/curves';
import type { Announcement } from './diagnostics';
import { ACCOUNTS } from './lookups';

const percent = (value: number | null): string => (value === null ? '–' : formatPercent(value));
const step = (value: number): string => value.toLocaleString('en');

/** A fraction with its interval: 99 % [97–100]. */
function interval(body: Body, name: string, at: At): string {
  const [value, low, high] = ['', '_low', '_high'].map((end) => (body.variables[name + end] ? number(body, name + end, at) : null));
  return `${percent(value ?? null)}${low == null || high == null ? '' : ` (${Math.round(100 * low)} to ${Math.round(100 * high)})`}`;
}

/** From which step on a condition holds without a break to the end; null where it does not hold at the end. */
export function holdsFrom(steps: number[], holds: (index: number) => boolean): number | null {
  let first: number | null = null;
  for (let index = steps.length - 1; index >= 0 && holds(index); index -= 1) first = steps[index] ?? null;
  return first;
}

const WIDE = 3; // lines: the widest positional account that is fitted

/** Which account has the greatest weight at the end, since when, and which had it before. */
export function tellMixture(body: Body, layer: number): string {
  const steps = stepsOf(body);
  const at = (account: string): At => ({ position: 'end', layer, account });
  const weights = ACCOUNTS.map(({ name }) => ({ name, y: numbers(body, 'weight', at(name)) }));
  const leader = (index: number): string => weights.reduce((best, each) => ((each.y[index] ?? 0) > (best.y[index] ?? 0) ? each : best)).name;
  const last = steps.length - 1;
  const winner = leader(last);
  const since = holdsFrom(steps, (index) => leader(index) === winner);
  const before = since === null ? -1 : steps.indexOf(since) - 1;
  const wide = (index: number): string => {
    const sigma = leader(index) === 'positional' && body.variables['sigma'] ? (number(body, 'sigma', { position: 'end', layer, step: steps[index] ?? 0 }) ?? 0) : 0;
    return sigma >= WIDE ? ` with σ = ${sigma} lines, so that nearly any line of a short program serves` : '';
  };
  const earlier = before < 0 ? '' : `; at step ${step(steps[before] ?? 0)} it was ${leader(before)}, ${interval(body, 'weight', { ...at(leader(before)), step: steps[before] ?? 0 })}${wide(before)}`;
  return `Entering layer ${layer} the end is ${winner} at the last checkpoint, ${interval(body, 'weight', { ...at(winner), step: steps[last] ?? 0 })}, the most of all accounts since step ${step(since ?? 0)}${earlier}.`;
}

/** Whether mean differences of lines swap bindings more often than random vectors do, at the last checkpoint. */
export function tellIdentifiers(body: Body): string {
  const last = stepsOf(body).at(-1) ?? 0;
  const cells = labelsOf(body, 'part').filter((part) => part === 'name' || part === 'value').flatMap((part) => labelsOf(body, 'layer').map((layer) => ({ step: last, part, layer })));
  const most = (intervention: string): { at: At; value: number; low: number } =>
    cells.map((cell) => ({ ...cell, intervention })).map((at) => ({ at, value: number(body, 'swapped', at) ?? 0, low: number(body, 'swapped_low', at) ?? 0 }))
      .reduce((best, each) => (each.value > best.value ? each : best)); // prettier-ignore
  const [found, control] = [most('mean'), most('random vector')];
  const controlHigh = number(body, 'swapped_high', control.at) ?? 1;
  const clear = found.low > controlHigh;
  const where = clear ? ` (${found.at.part}s entering layer ${found.at.layer})` : '';
  return `${clear ? 'As identifiers would,' : 'No sign of identifiers:'} mean differences of lines swap at most ${interval(body, 'swapped', found.at)} of the answers at the last checkpoint${where}, random vectors ${interval(body, 'swapped', control.at)}.`;
}

/** In which layer each part of a lookup is at the end, and since when in half of the answers. */
export function tellLookbacks(body: Body): string {
  const parts: { words: string; name: string; at: At }[] = [
    { words: 'address', name: 'binding', at: { moved: 'both' } },
    { words: 'pointer', name: 'end', at: { position: 'end', came: 'pointer' } },
    { words: 'payload', name: 'end', at: { position: 'end', came: 'payload' } },
  ];
  const steps = stepsOf(body);
  const last = steps.at(-1) ?? 0;
  const later = labelsOf(body, 'layer').slice(1); // the first layer reads tokens
  const told = parts.map(({ words, name, at }) => {
    const value = (layer: Value): number => number(body, name, { ...at, layer, step: last }) ?? 0;
    const best = later.reduce((most, layer) => (value(layer) > value(most) ? layer : most), later[0] ?? 0);
    const over = numbers(body, name, { ...at, layer: best });
    const since = holdsFrom(steps, (index) => (over[index] ?? 0) >= 0.5);
    return `${words} ${interval(body, name, { ...at, layer: best, step: last })} (L${best}, ${since === null ? 'never in half' : `in half since step ${step(since)}`})`;
  });
  return `At the last checkpoint: ${told.join(', ')}.`;
}

/** Between which neighbouring checkpoints a diagnostic changes most, and where. */
export function tellDiagnostic(series: Series[], title: string): string {
  const jumps = series.filter(({ dashed }) => !dashed).flatMap(({ name, x, y }) =>
    y.slice(1).flatMap((to, index) => {
      const from = y[index];
      return from == null || to === null ? [] : [{ name, first: x[index] ?? 0, second: x[index + 1] ?? 0, from, to }];
    })); // prettier-ignore
  if (!jumps.length) return '';
  const most = jumps.reduce((best, each) => (Math.abs(each.to - each.from) > Math.abs(best.to - best.from) ? each : best));
  const whose = series.filter(({ dashed }) => !dashed).length > 1 ? ` (${most.name})` : '';
  return `The ${title.replace(/^the /, '')} changes most between steps ${step(most.first)} and ${step(most.second)}: from ${formatNumber(most.from)} to ${formatNumber(most.to)}${whose}.`;
}

/** How many numbers leave their range before the answers do, beside how many would by accident. */
export function tellAnnouncements(rows: Announcement[]): string {
  const told = rows.filter(({ baseRate }) => baseRate !== null);
  if (!told.length) return 'What announces the end cannot be told: no checkpoint lies between the range and the departure of the answers.';
  const before = told.filter(({ announces }) => announces).length;
  const expected = told.reduce((sum, { baseRate }) => sum + (baseRate ?? 0), 0);
  return `${before} of ${told.length} numbers leave their range before the answers do; of as many that only fluctuate ${expected.toFixed(1)} would.`;
}
