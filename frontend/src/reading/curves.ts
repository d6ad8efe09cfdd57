/** Curves over training from the body of a trajectory. */
import { labelsOf, numbers, type At, type Body } from '../api/body';
import type { RunSummary } from '../api/client';
import { seriesColour } from '../charts/colour';
import type { Band, Series } from '../charts/types';

/** The steps along a body's first axis. */
export function stepsOf(body: Body): number[] {
  return labelsOf(body, 'step').map(Number);
}

/** A variable over steps, with its interval where the body has one; one curve for each label along `dim` that has a value at all. */
export function curves(body: Body, name: string, dim?: string, show: (label: string) => string = (label) => label): Series[] {
  if (!body.variables[name]) return [];
  const x = stepsOf(body);
  if (!dim) return [{ name: show(name), x, ...withInterval(body, name, {}) }];
  return labelsOf(body, dim)
    .map((label) => ({ name: show(String(label)), x, ...withInterval(body, name, { [dim]: label }) }))
    .filter(({ y }) => y.some((value) => value !== null));
}

function withInterval(body: Body, name: string, at: At): Pick<Series, 'y' | 'low' | 'high'> {
  const y = numbers(body, name, at);
  if (!body.variables[`${name}_low`]) return { y };
  return { y, low: numbers(body, `${name}_low`, at), high: numbers(body, `${name}_high`, at) };
}

/** For each rule how often predictions agree with it, and dashed how often it is right; rules that always agree share their curves. */
export function ruleCurves(body: Body): Series[][] {
  const x = stepsOf(body);
  const merged = new Map<string, { names: string[]; y: (number | null)[]; base: number | null }>();
  for (const rule of labelsOf(body, 'rule')) {
    const y = numbers(body, 'agreement', { rule });
    const base = numbers(body, 'rule_accuracy', { rule })[0] ?? null;
    const key = JSON.stringify([y, base]);
    const found = merged.get(key);
    if (found) found.names.push(wordsOf(rule));
    else merged.set(key, { names: [wordsOf(rule)], y, base });
  }
  return [...merged.values()].map(({ names, y, base }) => {
    const name = names.join(' = ');
    return [
      { name, x, y, colour: seriesColour(0) },
      { name: 'the rule is right', x, y: x.map(() => base), colour: seriesColour(1), dashed: true },
    ];
  });
}

export function wordsOf(name: unknown): string {
  return String(name).replaceAll('_', ' ');
}

/** The phases of a run, as bands behind its curves. */
export function bandsOf(run: RunSummary | null): Band[] {
  return (run?.phases ?? []).map((phase) => ({ name: phase.name, from: phase.first_step, to: phase.last_step }));
}

/** Which label along the steps is nearest to a step. */
export function columnOf(steps: number[], step: number): number {
  return steps.reduce((best, found, index) => (Math.abs(found - step) < Math.abs((steps[best] ?? 0) - step) ? index : best), 0);
}

/** Fractions of prediction sources over (source, step), or how far they are from the fractions of the answers' own lines. */
export function sourceFractions(body: Body, difference: boolean): (number | null)[] {
  return labelsOf(body, 'source').flatMap((source) => {
    const base = difference ? (numbers(body, 'answer_source', { source })[0] ?? 0) : 0;
    return numbers(body, 'prediction_source', { source }).map((fraction) => (fraction === null ? null : fraction - base));
  });
}

/** A (step, label) variable turned to rows of labels: what a heatmap over steps takes. */
export function rowsOver(body: Body, name: string, dim: string): (number | null)[] {
  return labelsOf(body, dim).flatMap((label) => numbers(body, name, { [dim]: label }));
}

/** Each seed's curve, and a band from the least to the most behind them. */
export function seedCurves(body: Body, name: string, depth: number | null): Series[] {
  const x = stepsOf(body);
  const at: At = depth === null ? {} : { depth };
  const band: Series = {
    name: 'least to most', x, y: x.map(() => null), low: numbers(body, `${name}_low`, at), high: numbers(body, `${name}_high`, at), colour: 'var(--ink-soft)',
  }; // prettier-ignore
  const each = labelsOf(body, 'seed').map((seed, index) => ({
    name: `seed ${seed}`, x, y: numbers(body, name, { seed, ...at }), colour: seriesColour(index),
  })); // prettier-ignore
  return [band, ...each];
}
