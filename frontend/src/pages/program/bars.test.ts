import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { answerCurves, answerBars, tellAnswer } from './bars';

/** Two steps, outputs 0–9 and a letter; the second is sure of 5. */
function body(answer: string, line1: string): Body {
  const outputs = [...'0123456789', 'a'];
  const first = outputs.map((output) => (output === '7' ? 0.5 : 0.05));
  const second = outputs.map((output) => (output === '5' ? 1 : 0));
  const over = (dims: string[], values: (string | number)[]) => ({ dims, values, units: '' });
  return {
    title: '',
    sizes: { step: 2, output: 11 },
    coords: { step: over(['step'], [0, 9]), output: over(['output'], outputs) },
    variables: { probability: over(['step', 'output'], [...first, ...second]) },
    attrs: { answer, line_1: line1 },
    provenance: { run: '', step: null, n: 1, seed: null, interval: '', note: '' },
    command: '',
    python: '',
  };
}

describe('a prediction', () => {
  it('is bars that add up to one and name the answer and line 1', () => {
    const bars = answerBars(body('5', '7'), 0);
    expect(bars.map((bar) => bar.value ?? 0).reduce((sum, fraction) => sum + fraction)).toBeCloseTo(1);
    expect(bars[5]?.label).toBe('5 (answer)');
    expect(bars[7]).toMatchObject({ label: '7 (line 1)', value: 0.5 });
    expect(bars.at(-1)).toMatchObject({ label: 'no digit', value: 0.05 });
    expect(answerBars(body('5', '5'), 0)[5]?.label).toBe('5 (answer, line 1)');
  });

  it('is told with what it means', () => {
    expect(tellAnswer(body('5', '7'), 0)).toBe('The model says 7 (50 %), the constant of line 1. The right answer is 5.');
    expect(tellAnswer(body('5', '7'), 9)).toBe('The model says 5 (100 %), which is right.');
    expect(tellAnswer(body('5', '5'), 9)).toContain('also the constant of line 1');
    expect(tellAnswer(body('2', '3'), 9)).toContain('The right answer is 2');
  });

  it('is three curves that add up to one, or two where answer and line 1 agree', () => {
    const curves = answerCurves(body('5', '7'));
    expect(curves.answer).toEqual([0.05, 1]);
    expect(curves.line1).toEqual([0.5, 0]);
    expect(curves.rest[0]).toBeCloseTo(0.45);
    expect(answerCurves(body('5', '5')).line1).toBeNull();
  });
});
