/** What panels find, in one sentence each, made of the numbers they draw. */
import { labelsOf, number, numbers, type Body } from '../api/body';
import { formatNumber, formatPercent } from '../charts/format';
import type { Series } from '../charts/types';
import { columnOf, stepsOf, wordsOf } from './curves';

export const atStep = (step: number): string => `step ${step.toLocaleString('en')}`;

/** The first step from which a curve stays at or above a level; null where it never does. */
export function staysAbove(x: readonly number[], y: readonly (number | null)[], level: number): number | null {
  let index = x.length;
  while (index > 0 && (y[index - 1] ?? -Infinity) >= level) index -= 1;
  return x[index] ?? null;
}

const lastOf = (values: readonly (number | null)[]): number | null => values.filter((value) => value !== null).at(-1) ?? null;
export const listed = (parts: readonly string[]): string => (parts.length < 2 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`);

/** 'Accuracy stays above 50 % from step 620 and above 90 % from step 900; it ends at 100 %.' */
export function tellRise(series: Series | undefined, what = 'Accuracy'): string {
  if (!series) return '';
  const end = lastOf(series.y);
  const passed = [0.5, 0.9].flatMap((level) => {
    const step = staysAbove(series.x, series.y, level);
    return step === null ? [] : [`above ${100 * level} % from ${atStep(step)}`];
  });
  return passed.length ? `${what} stays ${listed(passed)}; it ends at ${formatPercent(end)}.` : `${what} never stays above 50 %; it ends at ${formatPercent(end)}.`;
}

/** In which order several curves reach 90 % for good; of more than five the first and the last. */
export function tellOrder(series: readonly Series[]): string {
  const reached = series.flatMap(({ name, x, y }) => {
    const step = staysAbove(x, y, 0.9);
    return step === null ? [] : [{ name, step }];
  });
  const never = series.filter(({ name }) => !reached.some((one) => one.name === name)).map(({ name }) => name);
  const parts = reached.sort((one, other) => one.step - other.step).map(({ name, step }) => `${name} from ${atStep(step)}`);
  const told = parts.length > 5 ? `first ${parts[0]}, last ${parts.at(-1)}` : listed(parts);
  return [parts.length ? `90 % for good: ${told}` : '', never.length ? `not reached: ${listed(never)}` : ''].filter(Boolean).join('; ') + '.';
}

/** From when on predictions follow the chain more often than the first lines, where the two differ. */
export function tellMisleading(body: Body): string {
  const [chain, early, steps] = [numbers(body, 'follows_chain'), numbers(body, 'follows_early_lines'), stepsOf(body)];
  const turned = staysAbove(steps, chain.map((value, index) => (value ?? 0) - (early[index] ?? 0)), 1e-9);
  const most = Math.max(...early.map((value) => value ?? 0));
  const at = steps[early.indexOf(most)] ?? 0;
  const shortcut = `Line 1 or 2 is said most at ${atStep(at)}, in ${formatPercent(most)}`;
  return turned === null ? `${shortcut}; the chain is never followed more often for good.` : `${shortcut}; from ${atStep(turned)} on the chain is followed more often.`;
}

/** The rule that predictions agree with most beyond how often it is right, at the checkpoint of the slider. */
export function tellRule(body: Body, step: number): string {
  const at = stepsOf(body)[columnOf(stepsOf(body), step)] ?? step;
  const rules = labelsOf(body, 'rule').map((rule) => ({
    rule: wordsOf(rule),
    agrees: number(body, 'agreement', { step: at, rule }) ?? 0,
    right: number(body, 'rule_accuracy', { rule }) ?? 0,
  }));
  const most = rules.sort((one, other) => other.agrees - other.right - (one.agrees - one.right))[0];
  if (!most || most.agrees - most.right < 0.05) return `At ${atStep(at)} no rule is followed more than it is right.`;
  return `At ${atStep(at)} predictions agree with “${most.rule}” in ${formatPercent(most.agrees)}, where it is right in ${formatPercent(most.right)}.`;
}

/** Which answer lines are hardest at the checkpoint of the slider. */
export function tellRootLines(body: Body, step: number): string {
  const at = stepsOf(body)[columnOf(stepsOf(body), step)] ?? step;
  const lines = labelsOf(body, 'root_line').map((line) => ({ line, value: number(body, 'accuracy_by_root_line', { step: at, root_line: line }) }));
  const known = lines.filter((one): one is { line: (typeof one)['line']; value: number } => one.value !== null).sort((one, other) => one.value - other.value);
  const [worst, best] = [known[0], known.at(-1)];
  if (!worst || !best) return '';
  if (best.value - worst.value < 0.02) return `At ${atStep(at)} the answer's line makes no difference: ${formatPercent(worst.value)} to ${formatPercent(best.value)}.`;
  return `At ${atStep(at)} answers on line ${best.line} are right in ${formatPercent(best.value)}, those on line ${worst.line} in ${formatPercent(worst.value)}.`;
}

/** Which line predictions come from most at the checkpoint of the slider. */
export function tellSources(body: Body, step: number): string {
  const at = stepsOf(body)[columnOf(stepsOf(body), step)] ?? step;
  const lines = labelsOf(body, 'source').map((source) => ({
    source: String(source),
    fraction: number(body, 'prediction_source', { step: at, source }) ?? 0,
    answers: body.variables.answer_source ? (number(body, 'answer_source', { source }) ?? 0) : 0,
  }));
  const most = lines.sort((one, other) => other.fraction - one.fraction)[0];
  return most ? `At ${atStep(at)} most predictions come from ${most.source}: ${formatPercent(most.fraction)}, of the answers ${formatPercent(most.answers)}.` : '';
}

/** Where loss ends, and when half of its fall was over. */
export function tellLoss(series: readonly Series[]): string {
  const one = series.at(-1);
  const [first, end] = [one?.y.find((value) => value !== null) ?? null, lastOf(one?.y ?? [])];
  if (!one || first === null || end === null || first <= end) return '';
  const half = staysAbove(one.x, one.y.map((value) => (value === null ? null : -value)), -(first + end) / 2);
  return `Loss (${one.name.replace('evaluation: ', '')}) falls from ${first.toFixed(2)} to ${end.toFixed(end < 0.01 ? 4 : 2)}${half === null ? '' : `; half of it by ${atStep(half)}`}.`;
}

/** What each curve is at a step: 'At step 900: found 98 %, random 3 %.' */
export function tellAt(series: readonly Series[], step: number): string {
  const at = series[0]?.x[columnOf(series[0].x, step)];
  if (at === undefined) return '';
  const parts = series.flatMap(({ name, x, y }) => (y[x.indexOf(at)] == null ? [] : [`${name} ${formatPercent(y[x.indexOf(at)])}`]));
  return parts.length ? `At ${atStep(at)}: ${parts.join('; ')}.` : '';
}

/** The first n at which each curve lies below a level, the fewest first: 'Below 0.5 first: RNN at n = 32, LSTM at 64; not reached: MLP.' */
export function tellFewest(series: readonly Series[], level: number, show: (level: number) => string = String): string {
  const own = series.filter(({ of }) => of === undefined);
  const first = own.map(({ name, x, y }) => ({ name, n: x.find((_, index) => (y[index] ?? Infinity) < level) ?? null }));
  const reached = first.filter((one): one is { name: string; n: number } => one.n !== null).sort((one, other) => one.n - other.n);
  const never = first.filter(({ n }) => n === null).map(({ name }) => name);
  const parts = reached.map(({ name, n }, index) => `${name} at ${index ? '' : 'n = '}${n.toLocaleString('en')}`);
  return own.length ? [parts.length ? `Below ${show(level)} first: ${parts.join(', ')}` : '', never.length ? `${parts.length ? 'not' : `Below ${show(level)} not`} reached: ${listed(never)}` : ''].filter(Boolean).join('; ') + '.' : '';
}

/** From when on a curve stays above a half: 'The answer has more than half of the probability for good from step 800.' */
export function tellHalf(series: Series | undefined, what: string): string {
  if (!series?.x.length) return '';
  const from = staysAbove(series.x, series.y, 0.5);
  return from === null ? `${what} never stays above a half; it ends at ${formatPercent(lastOf(series.y))}.` : `${what} stays above a half from ${atStep(from)}; it ends at ${formatPercent(lastOf(series.y))}.`;
}

/** From what to what a curve goes, and where it is highest in between. */
export function tellSpan(series: Series | undefined, what: string): string {
  const known = series?.x.flatMap((x, index) => (series.y[index] == null ? [] : [{ x, y: series.y[index] }])) ?? [];
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last) return '';
  const most = known.reduce((best, one) => (one.y > best.y ? one : best));
  const peak = most === first || most === last ? '' : `, with the most, ${formatNumber(most.y)}, at ${atStep(most.x)}`;
  return `${what} goes from ${formatNumber(first.y)} at ${atStep(first.x)} to ${formatNumber(last.y)} at ${atStep(last.x)}${peak}.`;
}

/** Where each curve begins and ends: 'transformer: 64 at width 128, 512 at 1,024.' */
export function tellEnds(series: readonly Series[], what: string, show: (value: number) => string = (value) => formatNumber(value)): string {
  const parts = series.flatMap(({ name, of, x, y }) => {
    const known = x.flatMap((place, index) => (y[index] == null ? [] : [{ place, value: y[index] }]));
    const [first, last] = [known[0], known.at(-1)];
    if (of !== undefined || !first || !last) return [];
    const end = known.length > 1 ? `, ${show(last.value)} at ${last.place.toLocaleString('en')}` : '';
    return [`${name}: ${show(first.value)} at ${what} ${first.place.toLocaleString('en')}${end}`];
  });
  return parts.length ? `${parts.join('; ')}.` : '';
}

/** Where each chart is lowest: 'The loss is least at layers 4 (0.021, both scalings); heads 8 (0.03, transformer).' */
export function tellLeast(charts: readonly { title: string; series: readonly Series[] }[], what: string): string {
  const parts = charts.flatMap(({ title, series }) => {
    const points = series.flatMap(({ name, of, x, y }) => (of === undefined ? x.map((place, index) => ({ name, place, value: y[index] ?? Infinity })) : []));
    const least = points.toSorted((one, other) => one.value - other.value)[0];
    return least && least.value < Infinity ? [`${title} ${formatNumber(least.place)} (${formatNumber(least.value)}, ${least.name})`] : [];
  });
  return parts.length ? `${what} is least at ${parts.join('; ')}.` : '';
}
