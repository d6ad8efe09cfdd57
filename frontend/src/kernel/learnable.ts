/** Whether a transformer's kernel can learn templates for unseen symbols, and why: `bindscope.theory.kernel_learnable`. */
import { findOverlaps, type Overlap } from '../templates/checks';
import { namesOf, showTemplate, type Template } from '../templates/template';
import { findActivation, type ActivationName, type Expect } from './activation';
import { freshMoments, type Moments, type Sampling } from './attention';
import { eigenSymmetric, type Matrix } from './symmetric';

export interface KernelSettings {
  beta: number;
  gamma: number;
  activation: ActivationName;
  cls: boolean;
  sampling: Sampling;
}

/** A value with its standard error and a 95 % interval. */
export interface Estimate {
  value: number;
  error: number;
  low: number;
  high: number;
}

export type Verdict = 'learnable' | 'not learnable' | 'undecided' | 'not covered';

export interface KernelReport {
  matrix: Estimate[]; // row by row
  attention: Estimate[];
  withItself: Estimate[];
  eigenvalues: Estimate[]; // smallest first
  nullDirections: Matrix;
  overlaps: Overlap[];
  verdict: Verdict;
  why: string;
}

type Statistic = (same: number[], fresh: Matrix) => number[];

const ROUNDING = 1e-12;
const LABEL_TOLERANCE = 1e-6;
const PRECISE_FRACTION = 1e-2;

export function judgeTemplates(templates: readonly Template[], labels: readonly number[] | null, settings: KernelSettings, random: () => number): KernelReport {
  const { codes, nWildcards } = encodeTemplates(templates, settings.cls);
  const moments = freshMoments(codes, nWildcards, settings.beta, settings.gamma, settings.sampling, random);
  const expect = findActivation(settings.activation);
  const transform = (same: number[], fresh: Matrix): Matrix => transformed(expect, same, fresh);
  const matrix = jackknife((same, fresh) => transform(same, fresh).flat(), moments);
  const eigenvalues = jackknife((same, fresh) => eigenSymmetric(transform(same, fresh)).values, moments);
  const floor = ROUNDING * eigenvalues.at(-1)!.value * templates.length;
  const n = templates.length;
  const means = matrix.map(({ value }) => value);
  const nNull = eigenvalues.filter(({ low, high }) => high < floor && low > -floor).length;
  const nullDirections = eigenSymmetric(Array.from({ length: n }, (_, row) => means.slice(row * n, (row + 1) * n))).vectors.slice(0, nNull);
  const fraction = labels && nNull ? jackknife((same, fresh) => [fractionOf(labels, eigenSymmetric(transform(same, fresh)).vectors.slice(0, nNull))], moments)[0]! : null;
  const overlaps = findOverlaps(templates);
  const [verdict, why] = judge(eigenvalues, nullDirections, fraction, floor, templates.map(showTemplate));
  return {
    matrix,
    eigenvalues,
    nullDirections,
    overlaps,
    attention: jackknife((_, fresh) => fresh.flat(), moments),
    withItself: jackknife((same) => same.map((own) => expect(own, own, own)), moments),
    verdict: overlaps.length ? 'not covered' : verdict,
    why: overlaps.length ? `${describeOverlaps(overlaps)} The theory is about disjoint templates. Of N alone: ${why}` : why,
  };
}

function transformed(expect: Expect, same: number[], fresh: Matrix): Matrix {
  return fresh.map((row, left) => row.map((cross, right) => expect(same[left]!, same[right]!, cross)));
}

function judge(eigenvalues: Estimate[], directions: Matrix, fraction: Estimate | null, floor: number, names: string[]): [Verdict, string] {
  const { value, low, high } = eigenvalues[0]!;
  const words = `the smallest eigenvalue of N is ${general(value)}, 95 % interval ${general(low)} to ${general(high)}`;
  if (!directions.length) {
    if (low > floor) return ['learnable', `N is not singular: ${words}.`];
    return ['undecided', `${words}: its sign cannot be told; use more points.`];
  }
  const singular = `N is singular: it takes ${directions.map((direction) => describeDirection(direction, names)).join(' and ')} to 0`;
  if (!fraction) return ['not learnable', `${singular}; labels with a component there cannot be learned.`];
  if (fraction.low > LABEL_TOLERANCE) return ['not learnable', `${singular}, where the labels have a component (${(100 * fraction.value).toFixed(1)}% of their length).`];
  const next = eigenvalues[directions.length];
  if (fraction.high > PRECISE_FRACTION || (next && next.low <= floor)) return ['undecided', `${singular}; whether the labels have a component there cannot be told; use more points.`];
  return ['learnable', `${singular}, but the labels have no component there.`];
}

/** Wildcards by first appearance from 0, then numbers for regular tokens and the token at the end. */
export function encodeTemplates(templates: readonly Template[], cls: boolean): { codes: number[][]; nWildcards: number } {
  const nWildcards = Math.max(...templates.map((template) => namesOf(template, 'wildcard').length));
  const regular = [...new Set(templates.flatMap((template) => namesOf(template, 'regular')))];
  const codes = templates.map((template) => {
    const wildcards = namesOf(template, 'wildcard');
    const row = template.map(({ kind, name }) => (kind === 'wildcard' ? wildcards.indexOf(name) : nWildcards + regular.indexOf(name)));
    return cls ? [...row, nWildcards + regular.length] : row;
  });
  return { codes, nWildcards };
}

/** A statistic of the mean over randomisations, with what leaving out each of them says about error and bias. */
function jackknife(statistic: Statistic, { same, fresh }: Moments): Estimate[] {
  const n = same.length;
  const sumSame = same[0]!.map((_, index) => same.reduce((sum, row) => sum + row[index]!, 0));
  const sumFresh = fresh[0]!.map((row, left) => row.map((_, right) => fresh.reduce((sum, matrix) => sum + matrix[left]![right]!, 0)));
  const values = statistic(sumSame.map((sum) => sum / n), sumFresh.map((row) => row.map((sum) => sum / n)));
  const without = same.map((own, round) =>
    statistic(
      sumSame.map((sum, index) => (sum - own[index]!) / (n - 1)),
      sumFresh.map((row, left) => row.map((sum, right) => (sum - fresh[round]![left]![right]!) / (n - 1))),
    ),
  );
  return values.map((value, index) => {
    const mean = without.reduce((sum, row) => sum + row[index]!, 0) / n;
    const error = Math.sqrt(((n - 1) / n) * without.reduce((sum, row) => sum + (row[index]! - mean) ** 2, 0));
    const centre = n * value - (n - 1) * mean;
    const half = studentQuantile(n - 1) * error;
    return { value, error, low: Math.min(value, centre) - half, high: Math.max(value, centre) + half };
  });
}

/** The two-sided 95 % quantile of Student's t, by its expansion around the normal one. */
export function studentQuantile(n: number): number {
  const z = 1.959963984540054;
  return (
    z +
    (z ** 3 + z) / 4 / n +
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96 / n ** 2 +
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384 / n ** 3 +
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92160 / n ** 4
  );
}

function fractionOf(labels: readonly number[], directions: Matrix): number {
  const length = Math.hypot(...labels);
  return length ? Math.hypot(...directions.map((direction) => direction.reduce((sum, weight, index) => sum + weight * labels[index]!, 0))) / length : 0;
}

function describeOverlaps(overlaps: Overlap[]): string {
  const shown = overlaps.slice(0, 3).map(({ first, second, string }) => `${first} and ${second} both match ${string.join(' ')}`);
  const more = overlaps.length > 3 ? `; and ${overlaps.length - 3} more pairs` : '';
  return `Templates are not disjoint: ${shown.join('; ')}${more}.`;
}

function describeDirection(direction: number[], names: string[]): string {
  const largest = direction.reduce((best, weight) => (Math.abs(weight) > Math.abs(best) ? weight : best), 0);
  const parts = direction.flatMap((weight, index) => {
    const signed = weight * Math.sign(largest);
    return Math.abs(signed) > 5e-3 ? [`${signed >= 0 ? '+' : ''}${signed.toFixed(2)}·${names[index]}`] : [];
  });
  return parts.slice(0, 8).join(' ') + (parts.length > 8 ? ' …' : '');
}

/** Three digits as Python's `.3g` writes them: 0.00295, 4.71e-05. */
export function general(value: number): string {
  if (value === 0) return '0';
  const exponent = Number(value.toExponential(2).split('e')[1]);
  if (exponent >= -4 && exponent < 3) return String(Number(value.toPrecision(3)));
  const [digits, power] = [Number(value.toExponential(2).split('e')[0]), Math.abs(exponent)];
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(power).padStart(2, '0')}`;
}
