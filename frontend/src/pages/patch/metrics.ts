/** What a patch did to the answer: how each measure is named, drawn and told. */
import { number, type Body } from '../../api/body';
import { formatInterval, formatNumber, formatPercent } from '../../charts/format';
import type { Limits, ScaleName } from '../../charts/colour';
import { topOf } from '../../reading/digits';

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
    meaning: 'how far the logit of the source’s answer alone has moved, from 0 (base run) to 1 (source run); disruption can raise it too',
    scale: 'diverging',
    limits: [-1, 1],
    percent: false,
  },
  kl: { title: 'KL', meaning: 'how far the distribution has moved from the base run, in nats', scale: 'sequential', limits: [0, 15], percent: false },
};

/** The command of a grid or a patch, for the measure that is shown: without one it gives success. */
export function commandFor(command: string | undefined, metric: Metric): string {
  return command && metric !== 'success' ? `${command} --metric ${metric}` : (command ?? '');
}

/** The same of the mean grids, whose command is of every checkpoint and of noising. */
export function commandOfMean(command: string | undefined, metric: Metric, direction: Direction, step?: number): string {
  if (!command?.includes(' patch ')) return command ?? '';
  const placed = step === undefined ? command : command.replace('--steps all', `--steps ${step}`);
  return commandFor(direction === 'noising' ? placed : `${placed} --direction ${direction}`, metric);
}

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

/** What the patch did, in a sentence. */
export function tellPatch(body: Body, step: number, direction: Direction): string {
  const { base, source } = whose(direction);
  const [old, target] = [String(body.attrs?.base_answer ?? ''), String(body.attrs?.source_answer ?? '')];
  const [before, now] = [topOf(body, { step, condition: 'base' }), topOf(body, { step, condition: 'patched' })];
  const fraction = formatPercent(now.fraction);
  if (now.output === target) {
    return before.output === target
      ? `${capital(source)}’s ${target} is the top answer (${fraction}), as it was before the patch.`
      : `${capital(source)}’s ${target} is now the top answer (${fraction}).`;
  }
  if (now.output === old) {
    return before.output === old
      ? `${capital(base)}’s own ${old} stays the top answer (${fraction}).`
      : `${capital(base)}’s own ${old} is now the top answer (${fraction}); before it was ${before.output}.`;
  }
  const change = now.output === before.output ? 'still' : 'now';
  return `${now.output} is ${change} the top answer (${fraction}): neither ${base}’s ${old} nor ${source}’s ${target}.`;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Every measure of a patched pair at a step, told. */
export function tellMeasures(body: Body, step: number): { title: string; meaning: string; value: string }[] {
  return (Object.keys(METRICS) as Metric[]).map((metric) => ({
    title: METRICS[metric].title,
    meaning: METRICS[metric].meaning,
    value: body.variables[metric] ? tellValue(metric, number(body, metric, { step })) : '',
  }));
}
