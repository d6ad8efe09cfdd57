/** Neurons as Fourier components: what a neuron is given for each pair of numbers, and the cosines fitted to it. */
import { number, numbers, type Body } from '../../api/body';
import { formatNumber, formatPercent } from '../../charts/format';
import type { Point } from '../../charts/types';

/** What the circuit gives a neuron over (index of n1, index of n2), row by row: a part from each number. */
export function preactivation(body: Body, neuron: number): number[] {
  const part = numbers(body, 'part', { neuron }).map((value) => value ?? 0);
  const [first, second] = circlesOf(body);
  return first.flatMap((n1) => second.map((n2) => (part[n1] ?? 0) + (part[n2] ?? 0)));
}

/** The fitted Fourier component in the same form: mean + a·[cos(2πk·i/m + φ1) + cos(2πk·j/m + φ2)]. */
export function fitted(body: Body, neuron: number): number[] {
  const [mean = 0, amplitude = 0, frequency = 0, phase1 = 0, phase2 = 0] = ['mean', 'amplitude', 'frequency', 'phase_1', 'phase_2'].map(
    (name) => number(body, name, { neuron }) ?? 0,
  );
  const n = circlesOf(body)[0].length;
  const component = (phase: number): number[] => Array.from({ length: n }, (_, index) => Math.cos((2 * Math.PI * frequency * index) / n + phase));
  const [first, second] = [component(phase1), component(phase2)];
  return first.flatMap((one) => second.map((other) => mean + amplitude * (one + other)));
}

/** The numbers along both axes, in the order of the circle on which the operator is an addition. */
export function circlesOf(body: Body): [number[], number[]] {
  return [(body.coords.first?.values ?? []).map(Number), (body.coords.second?.values ?? []).map(Number)];
}

/** A point for each neuron: frequency against explained variance; a neuron that is constant has none. */
export function neuronPoints(body: Body): { points: Point[]; neurons: number[] } {
  const variance = numbers(body, 'explained_variance');
  const frequency = numbers(body, 'frequency');
  const neurons = variance.flatMap((fraction, neuron) => (fraction === null ? [] : [neuron]));
  return {
    neurons,
    points: neurons.map((neuron) => ({ x: frequency[neuron] ?? 0, y: variance[neuron] ?? 0, group: groupOf(variance[neuron] ?? 0), name: `neuron ${neuron}` })),
  };
}

export const FIT_GROUPS = ['fits well (85 % or more)', 'in between', 'fits badly (below half)'];

function groupOf(fraction: number): string {
  return FIT_GROUPS[fraction >= 0.85 ? 0 : fraction >= 0.5 ? 1 : 2]!;
}

/** How many neurons have each frequency as their best, most common first. */
export function countFrequencies(body: Body, least = 0.5): { frequency: number; count: number }[] {
  const counts = new Map<number, number>();
  const variance = numbers(body, 'explained_variance');
  numbers(body, 'frequency').forEach((frequency, neuron) => {
    if (frequency !== null && (variance[neuron] ?? 0) >= least) counts.set(frequency, (counts.get(frequency) ?? 0) + 1);
  });
  return [...counts].map(([frequency, count]) => ({ frequency, count })).sort((one, other) => other.count - one.count || one.frequency - other.frequency);
}

/** `22 (50), 2 (49) and 3 more`: the frequencies that most neurons have, and how many are left out. */
export function tellFrequencies(counts: readonly { frequency: number; count: number }[], most = 12): string {
  const listed = counts.slice(0, most).map(({ frequency, count }) => `${frequency} (${count})`);
  const left = counts.length - listed.length;
  return `${listed.join(', ') || 'none'}${left ? ` and ${left} more` : ''}`;
}

/** How many neurons are Fourier components, and of which frequencies most often. */
export function tellNeurons(body: Body): string {
  const counts = countFrequencies(body);
  const fitted = counts.reduce((sum, { count }) => sum + count, 0);
  const most = counts.slice(0, 3).map(({ frequency, count }) => `${frequency} (${count})`);
  return `${fitted} of ${body.sizes.neuron} neurons are Fourier components by at least half of their variance${most.length ? `; most often of frequency ${most.join(', ')}` : ''}.`;
}

/** The cosines fitted to a neuron, and how much they explain of it. */
export function tellNeuron(body: Body, neuron: number): string {
  const at = (name: string): number => number(body, name, { neuron }) ?? 0;
  const m = circlesOf(body)[0].length;
  const component = (letter: string, phase: number): string => `cos(2π·${at('frequency')}·${letter}/${m} ${phase < 0 ? '−' : '+'} ${formatNumber(Math.abs(phase))})`;
  return `Neuron ${neuron}: ${formatNumber(at('amplitude'))}·[${component('n', at('phase_1'))} + ${component('m', at('phase_2'))}] explains ${formatPercent(at('explained_variance'))} of its variance.`;
}

/** The neuron that is fitted best. */
export function bestNeuron(body: Body): number {
  const variance = numbers(body, 'explained_variance').map((fraction) => fraction ?? -1);
  return variance.indexOf(Math.max(...variance));
}

/** A colour scale that both maps share: as far from 0 as either goes, in round numbers. */
export function reachOf(values: readonly number[]): number {
  const most = Math.max(1e-9, ...values.map(Math.abs));
  const power = 10 ** Math.floor(Math.log10(most));
  return (([1, 2, 5].find((factor) => factor * power >= most) ?? 10) * power);
}
