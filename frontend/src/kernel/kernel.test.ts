import { expect, test } from 'vitest';
import { answerKernel } from '../engine/templates';
import { seededRandom } from '../templates/checks';
import { parseTemplate } from '../templates/template';
import { findActivation, gaussHermite } from './activation';
import cases from './cases.json';
import { general, judgeTemplates, studentQuantile } from './learnable';
import { generatingVector, latticePoints, toGaussian } from './points';
import { eigenSymmetric } from './symmetric';

test('eigenvectors are orthonormal and give the matrix back', () => {
  const random = seededRandom(1);
  const half = Array.from({ length: 6 }, () => Array.from({ length: 6 }, () => random() - 0.5));
  const matrix = half.map((row, i) => row.map((value, j) => value + half[j]![i]!));
  const { values, vectors } = eigenSymmetric(matrix);
  matrix.forEach((row, i) => row.forEach((entry, j) => {
    expect(vectors.reduce((sum, vector, k) => sum + values[k]! * vector[i]! * vector[j]!, 0)).toBeCloseTo(entry, 12);
    expect(vectors[i]!.reduce((sum, weight, k) => sum + weight * vectors[j]![k]!, 0)).toBeCloseTo(i === j ? 1 : 0, 12);
  })); // prettier-ignore
  expect(values).toEqual(values.toSorted((one, other) => one - other));
});

test('points, quantiles and quadrature are what Python makes', () => {
  expect(generatingVector(64, 4).every((step) => step % 2 === 1)).toBe(true);
  for (const { at, gaussian } of cases.quantiles) expect(toGaussian(at)).toBeCloseTo(gaussian, 12);
  const { nodes, weights } = gaussHermite();
  for (const [power, moment] of [[0, 1], [2, 1], [4, 3], [6, 15]] as const) {
    expect(nodes.reduce((sum, node, index) => sum + weights[index]! * node ** power, 0)).toBeCloseTo(moment, 9);
  }
  expect(Math.max(...latticePoints(16, [0.3, 0.9]))).toBeLessThanOrEqual(1);
  expect(studentQuantile(15)).toBeCloseTo(2.13145, 4);
});

test.each(cases.activations)('$name: E[φ(a)φ(b)] is what Python computes', ({ name, values }) => {
  for (const { first, second, cross, expected } of values) expect(findActivation(name as 'cos')(first, second, cross)).toBeCloseTo(expected, 7);
});

test.each(cases.kernels)('N of $templates agrees with Python within both errors, and so does the verdict', ({ templates, labels, settings, kernel, errors, eigenvalues, eigenvalueErrors, verdict, why }) => {
  const sampling = { nOuter: 128, nInner: 16, nRandomisations: 16 };
  const report = judgeTemplates(templates.map(parseTemplate), labels, { ...settings, activation: settings.activation as 'cos', sampling }, seededRandom(5));
  report.matrix.forEach(({ value, error }, place) => expect(Math.abs(value - kernel[place]!), `entry ${place}`).toBeLessThan(5 * Math.hypot(error, errors[place]!) + 1e-6));
  report.eigenvalues.forEach(({ value, error }, place) => expect(Math.abs(value - eigenvalues[place]!), `eigenvalue ${place}`).toBeLessThan(5 * Math.hypot(error, eigenvalueErrors[place]!) + 1e-6));
  report.eigenvalues.forEach(({ error }, place) => expect(error).toBeLessThan(20 * eigenvalueErrors[place]! + 1e-9)); // as precise, too
  expect(report.verdict).toBe(verdict);
  const words = (text: string): string => text.replaceAll(/[−+-]?[\d.]+(e-\d+)?/g, '#');
  expect(words(report.why)).toBe(words(why));
});

test('numbers are written as Python writes them', () => {
  for (const { value, text } of cases.numbers) expect(general(value)).toBe(text);
});

test('what the theory cannot take is refused in a sentence', () => {
  expect(() => answerKernel({ templates: ['AA', 'BB'] })).toThrow('are equivalent; remove one of them.');
  expect(() => answerKernel({ templates: ['AA', 'B'] })).toThrow('have 2 and 1 tokens; make them equal.');
  expect(() => answerKernel({ templates: ['AAAAAAAAAAA'] })).toThrow('at most 10 tokens');
  expect(() => answerKernel({ templates: Array.from({ length: 9 }, () => 'A') })).toThrow('give 1 to 8, got 9');
  expect(() => answerKernel({ templates: ['AA', 'AB'], labels: [1] })).toThrow('need as many labels');
});

test('the command says what is not as usual', () => {
  const { command } = answerKernel({ templates: ['A=', 'A"'], labels: [1, -1], beta: 2, cls: false, points: 16 });
  expect(command).toBe(`bindscope kernel A= 'A"' --labels=1,-1 --beta 2 --no-cls --points 16`);
});
