/** How bindings are looked up, over training: series of the panels about accounts, identifiers, lookbacks, reassignment and shared features. */
import { labelsOf, numbers, type At, type Body } from '../../api/body';
import { seriesColour } from '../../charts/colour';
import type { Series } from '../../charts/types';
import { stepsOf } from '../../reading/curves';

/** The accounts in the order they are drawn in, each with its colour and its meaning. */
export const ACCOUNTS = [
  { name: 'early', colour: 'var(--heuristic)', means: 'the constants of lines 1 and 2' },
  { name: 'lexical', colour: 'var(--systematic)', means: 'the name that is asked for' },
  { name: 'positional', colour: seriesColour(3), means: 'the line that its binding had' },
  { name: 'reflexive', colour: seriesColour(2), means: 'the value itself' },
  { name: 'unchanged', colour: seriesColour(6), means: 'the patch changes nothing' },
  { name: 'other', colour: 'var(--line)', means: 'none of these' },
] as const;

/** A variable over steps at a fixed place along its other axes, with its interval. */
export function curveAt(body: Body, name: string, at: At, words: string, more: Partial<Series> = {}): Series {
  const interval = body.variables[`${name}_low`] ? { low: numbers(body, `${name}_low`, at), high: numbers(body, `${name}_high`, at) } : {};
  return { name: words, x: stepsOf(body), y: numbers(body, name, at), ...interval, ...more };
}

/** The weights of four accounts where the end of a program enters a layer. */
export function accountCurves(body: Body, layer: number): Series[] {
  return ACCOUNTS.slice(0, 4).map(({ name, colour }) => curveAt(body, 'weight', { position: 'end', layer, account: name }, name, { colour }));
}

/** The weights of all accounts, layer by layer, at one step: parts that add up to 1. */
export function accountBars(body: Body, step: number, position: string): { layer: string; parts: { name: string; colour: string; weight: number }[] }[] {
  const layers = labelsOf(body, 'layer');
  return layers.map((layer, index) => ({
    layer: index === layers.length - 1 ? 'end' : `L${layer}`,
    parts: ACCOUNTS.map(({ name, colour }) => ({ name, colour, weight: numbers(body, 'weight', { step, layer, position, account: name })[0] ?? 0 })),
  }));
}

/** One curve a layer of an intervention on names, values or lines; its control, if any, dashed in the same colours. */
export function identifierCurves(body: Body, part: string, intervention: string): Series[] {
  const read = intervention === 'exchanged' ? 'kept' : 'swapped';
  const control = { mean: 'random vector', order: 'shuffled order' }[intervention];
  return labelsOf(body, 'layer').flatMap((layer, index) => {
    const colour = seriesColour(index);
    const own = curveAt(body, read, { part, intervention, layer }, `L${layer}`, { colour });
    return control ? [own, { ...plain(curveAt(body, read, { part, intervention: control, layer }, `L${layer}, control`, { colour })), dashed: true }] : [own];
  });
}

/** One curve a layer of what a patch brings along. */
export function lookbackCurves(body: Body, name: string, at: At): Series[] {
  return labelsOf(body, 'layer').map((layer, index) => curveAt(body, name, { ...at, layer }, `L${layer}`, { colour: seriesColour(index) }));
}

/** How often the write that is in force is answered with, by where the variable was overwritten. */
export function answeredCurves(body: Body): Series[] {
  const words: Record<string, string> = { query: 'queried variable', earlier: 'inside the chain, before its use', later: 'inside the chain, after its use' };
  return labelsOf(body, 'situation').map((situation, index) =>
    curveAt(body, 'answered', { situation, outcome: 'right' }, words[String(situation)] ?? String(situation), { colour: seriesColour(index) }),
  );
}

/** How much of the features of each kind every checkpoint has; the second dictionary dashed in the same colours. */
export function featureCurves(body: Body, layer: number): Series[] {
  const words: Record<string, string> = { name: 'the line’s name', token: 'the token', value: 'a reference’s value', line: 'the line’s number', none: 'none of these' };
  return labelsOf(body, 'kind').flatMap((kind, index) => {
    const counts = labelsOf(body, 'seed').map((seed) => numbers(body, 'count', { kind, layer, seed })[0] ?? 0);
    if (Math.min(...counts) === 0) return [];
    return labelsOf(body, 'seed').map((seed, which) => ({
      ...curveAt(body, 'norm', { kind, layer, seed }, `${words[String(kind)] ?? kind} (${counts[which]}${which > 0 ? ', other seed' : ''})`, { colour: seriesColour(index) }),
      ...(which > 0 ? { dashed: true } : {}),
    }));
  });
}

/** What a step shows of reassignment, in words. */
export function findingAt(body: Body, step: number): string {
  return String(labelsOf(body, 'finding')[stepsOf(body).indexOf(step)] ?? '');
}

function plain({ name, x, y, colour }: Series): Series {
  return { name, x, y, ...(colour ? { colour } : {}) };
}
