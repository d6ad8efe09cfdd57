import { describe, expect, it } from 'vitest';
import type { Body, Value } from '../api/body';
import { listed, staysAbove, tellLoss, tellMisleading, tellOrder, tellRise, tellRootLines, tellRule, tellSources, tellAt, tellEnds, tellFewest, tellHalf, tellSpan, tellLeast } from './findings';

const x = [0, 100, 200, 300];
const over = (dims: string[], values: Value[]) => ({ dims, values, units: '' });
const body: Body = {
  title: '', attrs: {}, command: '', python: '',
  provenance: { run: '', step: null, n: null, seed: null, interval: '', note: '' },
  sizes: { step: 4, rule: 2, root_line: 2, source: 2 },
  coords: { step: over(['step'], x), rule: over(['rule'], ['line_1', 'last']), root_line: over(['root_line'], [1, 2]), source: over(['source'], ['line 1', 'line 2']) },
  variables: {
    follows_chain: over(['step'], [0.1, 0.2, 0.9, 1]),
    follows_early_lines: over(['step'], [0.3, 0.7, 0.1, 0]),
    agreement: over(['step', 'rule'], [0.3, 0.3, 0.9, 0.2, 0.5, 0.3, 0.4, 0.3]),
    rule_accuracy: over(['rule'], [0.4, 0.3]),
    accuracy_by_root_line: over(['step', 'root_line'], [0.1, 0.1, 0.9, 0.2, 1, 0.5, 1, 0.99]),
    prediction_source: over(['step', 'source'], [0.5, 0.5, 0.8, 0.2, 0.4, 0.6, 0.5, 0.5]),
    answer_source: over(['source'], [0.4, 0.6]),
  },
}; // prettier-ignore

describe('findings', () => {
  it('know from when on a curve stays above a level', () => {
    expect(staysAbove(x, [0.9, 0.2, 0.6, 0.95], 0.5)).toBe(200);
    expect(staysAbove(x, [0.9, 0.2, 0.6, 0.4], 0.5)).toBeNull();
    expect(tellRise({ name: 'a', x, y: [0.1, 0.6, 0.4, 0.95] })).toBe('Accuracy stays above 50 % from step 300 and above 90 % from step 300; it ends at 95 %.');
    expect(tellRise({ name: 'a', x, y: [0.1, 0.2, 0.3, 0.4] })).toBe('Accuracy never stays above 50 %; it ends at 40 %.');
  });
  it('order curves by when they arrive', () => {
    const series = [{ name: 'depth 2', x, y: [0, 0, 0, 1] }, { name: 'depth 1', x, y: [0, 1, 1, 1] }, { name: 'depth 3', x, y: [0, 0, 0, 0] }]; // prettier-ignore
    expect(tellOrder(series)).toBe('90 % for good: depth 1 from step 100 and depth 2 from step 300; not reached: depth 3.');
  });
  it('name the first and the last of many curves', () => {
    const series = [1, 2, 3, 4, 5, 6].map((n) => ({ name: `split ${n}`, x: [0, n], y: [0, 1] }));
    expect(tellOrder(series)).toBe('90 % for good: first split 1 from step 1, last split 6 from step 6.');
  });
  it('say when a curve passes a half, and from what to what it goes', () => {
    expect(tellHalf({ name: 'a', x, y: [0.9, 0.2, 0.6, 0.95] }, 'It')).toBe('It stays above a half from step 200; it ends at 95 %.');
    expect(tellHalf({ name: 'a', x, y: [0.1, 0.2, 0.6, 0.3] }, 'It')).toBe('It never stays above a half; it ends at 30 %.');
    expect(tellSpan({ name: 'a', x, y: [1, 7, null, 3] }, 'It')).toBe('It goes from 1 at step 0 to 3 at step 300, with the most, 7, at step 100.');
    expect(tellSpan({ name: 'a', x, y: [1, null, null, 3] }, 'It')).toBe('It goes from 1 at step 0 to 3 at step 300.');
    expect([tellHalf(undefined, 'It'), tellSpan({ name: 'a', x, y: [null, null, null, null] }, 'It')]).toEqual(['', '']);
  });
  it('say what predictions follow', () => {
    expect(tellMisleading(body)).toBe('Line 1 or 2 is said most at step 100, in 70 %; from step 200 on the chain is followed more often.');
    expect(tellRule(body, 100)).toBe('At step 100 predictions agree with “line 1” in 90 %, where it is right in 40 %.');
    expect(tellRule(body, 300)).toBe('At step 300 no rule is followed more than it is right.');
    expect(tellRootLines(body, 100)).toBe('At step 100 answers on line 1 are right in 90 %, those on line 2 in 20 %.');
    expect(tellRootLines(body, 300)).toContain('makes no difference');
    expect(tellSources(body, 100)).toBe('At step 100 most predictions come from line 1: 80 %, of the answers 40 %.');
  });
  it('say where a loss ends', () => {
    expect(tellLoss([{ name: 'evaluation: whole', x, y: [2, 1.5, 0.5, 0.001] }])).toBe('Loss (whole) falls from 2.00 to 0.0010; half of it by step 200.');
    expect(tellLoss([])).toBe('');
    expect(listed(['a', 'b', 'c'])).toBe('a, b and c');
  });
});

describe('curves over something else than training', () => {
  const one = { name: 'A', x: [8, 16, 32], y: [1, 0.4, 0.1] };
  const other = { name: 'B', x: [8, 16], y: [0.9, 0.8] };
  it('are told at a step, by the first n below a level, and by their ends', () => {
    expect(tellAt([one, other], 17)).toBe('At step 16: A 40 %; B 80 %.');
    expect(tellAt([], 3)).toBe('');
    expect(tellFewest([other, one], 0.5)).toBe('Below 0.5 first: A at n = 16; not reached: B.');
    expect(tellFewest([other, one], 0.95)).toBe('Below 0.95 first: B at n = 8, A at 16.');
    expect(tellFewest([other], 0.5)).toBe('Below 0.5 not reached: B.');
    expect(tellEnds([one, { ...other, of: 'A' }], 'width')).toBe('A: 1 at width 8, 0.1 at 32.');
    expect(tellEnds([{ name: 'C', x: [4], y: [null] }], 'width')).toBe('');
  });
});

it('says where each of several charts is lowest, of what is known', () => {
  const chart = (title: string, y: (number | null)[], name = 'transformer') => ({ title, series: [{ name, x: [1, 2, 1024], y }, { name: 'paper', of: name, x: [4], y: [0] }] });
  expect(tellLeast([chart('layers', [0.5, 0.25, null]), chart('heads', [1, 2, 0.125], 'both scalings')], 'The loss')).toBe('The loss is least at layers 2 (0.25, transformer); heads 1,024 (0.125, both scalings).');
  expect(tellLeast([chart('layers', [null, null, null])], 'The loss')).toBe('');
});
