/** What a patch did to the answer: how each measure is named, drawn and told. */
import { labelsOf, number, numbers, type Body } from '../../api/body';
import { formatInterval, formatNumber, formatPercent } from '../../charts/format';
import type { Limits, ScaleName } from '../../charts/colour';
import type { Bar } from '../../charts/types';
import { DIGITS } from '../../program/program';

export type Metric = 'success' | 'kept' | 'logit_difference' | 'new_logit' | 'kl';
export type Direction = 'noising' | 'denoising';

interface Shown {
  title: string;
  meaning: string;
  scale: ScaleName;
  limits: Limits; // the same for every grid, so that colours can be compared
  percent: boolean;
}

export const METRICS: Record<Metric, Shown> = {
  success: { title: 'success', meaning: 'the source’s answer is on top', scale: 'sequential', limits: [0, 1], percent: true },
  kept: { title: 'kept', meaning: 'the base’s answer is still on top', scale: 'sequential', limits: [0, 1], percent: true },
  logit_difference: {
    title: 'logit difference',
    meaning: 'how far source answer − base answer has moved, from 0 (base run) to 1 (source run)',
    scale: 'diverging',
    limits: [-1, 1],
    percent: false,
  },
  new_logit: {
    title: 'new logit',
    meaning: 'the same for the logit of the source’s answer alone; disruption can raise it too',
    scale: 'diverging',
    limits: [-1, 1],
    percent: false,
  },
  kl: { title: 'KL', meaning: 'how far the distribution has moved from the base run, in nats', scale: 'sequential', limits: [0, 15], percent: false },
};

export function knownMetric(name: string): Metric {
  return name in METRICS ? (name as Metric) : 'success';
}

export function knownDirection(name: string): Direction {
  return name === 'denoising' ? 'denoising' : 'noising';
}

/** A value in words; with its interval where it has one. */
export function tellValue(metric: Metric, value: number | null, low?: number | null, high?: number | null): string {
  if (value === null) return 'no value';
  const text = formatInterval(value, low, high, METRICS[metric].percent ? formatPercent : formatNumber);
  return metric === 'kl' ? `${text} nats` : text;
}

/** Whose answer is whose: noising runs the program and takes from the counterfactual. */
export function whose(direction: Direction): { base: string; source: string } {
  return direction === 'noising'
    ? { base: 'the program', source: 'the counterfactual' }
    : { base: 'the counterfactual', source: 'the program' };
}

/** The output on top in one condition, with its share. */
export function topOf(body: Body, step: number, condition: string): { output: string; share: number } {
  const shares = numbers(body, 'probability', { step, condition }).map((share) => share ?? 0);
  const best = shares.indexOf(Math.max(...shares));
  return { output: String(labelsOf(body, 'output')[best] ?? ''), share: shares[best] ?? 0 };
}

/** What the patch did, in a sentence. */
export function tellPatch(body: Body, step: number, direction: Direction): string {
  const { base, source } = whose(direction);
  const [old, target] = [String(body.attrs?.base_answer ?? ''), String(body.attrs?.source_answer ?? '')];
  const [before, now] = [topOf(body, step, 'base'), topOf(body, step, 'patched')];
  const share = formatPercent(now.share);
  if (now.output === target) {
    return before.output === target
      ? `${capital(source)}’s ${target} is the top answer (${share}), as it was before the patch.`
      : `${capital(source)}’s ${target} is now the top answer (${share}).`;
  }
  if (now.output === old) {
    return before.output === old
      ? `${capital(base)}’s own ${old} stays the top answer (${share}).`
      : `${capital(base)}’s own ${old} is now the top answer (${share}); before it was ${before.output}.`;
  }
  const change = now.output === before.output ? 'still' : 'now';
  return `${now.output} is ${change} the top answer (${share}): neither ${base}’s ${old} nor ${source}’s ${target}.`;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

const ROLE_COLOURS: Record<string, string> = { source: 'var(--systematic)', answer: 'var(--systematic)', base: 'var(--heuristic)' };

/** A bar for each digit in one condition, and one for all that is no digit. */
export function conditionBars(body: Body, at: Record<string, string | number>, roles: Record<string, string>): Bar[] {
  const outputs = labelsOf(body, 'output').map(String);
  const shares = numbers(body, 'probability', at).map((share) => share ?? 0);
  const bars = [...DIGITS].map((digit): Bar => {
    const role = roles[digit] ?? '';
    const colour = ROLE_COLOURS[role] ?? 'var(--random)';
    return { label: role ? `${digit} (${role})` : digit, value: shares[outputs.indexOf(digit)] ?? 0, colour };
  });
  const rest = shares.reduce((sum, share, index) => (DIGITS.includes(outputs[index] ?? '') ? sum : sum + share), 0);
  return [...bars, { label: 'no digit', value: Math.max(0, rest), colour: 'var(--random)' }];
}

/** Every measure of a patched pair at a step, told. */
export function tellMeasures(body: Body, step: number): { title: string; meaning: string; value: string }[] {
  return (Object.keys(METRICS) as Metric[]).map((metric) => ({
    title: METRICS[metric].title,
    meaning: METRICS[metric].meaning,
    value: body.variables[metric] ? tellValue(metric, number(body, metric, { step })) : '',
  }));
}
