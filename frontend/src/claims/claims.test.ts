import { describe, expect, it } from 'vitest';
import type { Body } from '../api/body';
import { countVerdicts, headOf, quantitiesInRow, readClaims, type Claim } from './claims';

const over = (dim: string, values: unknown[]) => ({ dims: [dim], values: values as string[], units: '' });
const words = ['title', 'paper', 'reason', 'statement', 'measure', 'criterion', 'control', 'fixed', 'results'];
const body: Body = {
  title: 'Claims', attrs: {}, command: '', python: '', sizes: { claim: 2, quantity: 3 },
  provenance: { run: 'made', step: 9, n: null, seed: 0, interval: '', note: '' },
  coords: { claim: over('claim', ['VB1', 'VB2']) },
  variables: {
    ...Object.fromEntries(words.map((word) => [word, over('claim', [`${word} 1`, `${word} 2`])])),
    missing: over('claim', ['', 'lens, grids']),
    verdict: over('claim', ['replicates', 'not measured yet']),
    figure: over('claim', ['runs/made/claims/VB1.svg', '']),
    quantity_of: over('quantity', ['VB1', 'VB1', 'VB1']),
    quantity_kind: over('quantity', ['found', 'control', 'found']),
    quantity_label: over('quantity', ['end', 'shuffled', 'plateau']),
    quantity_text: over('quantity', ['99 %', '0 %', '55 %']),
    quantity_n: over('quantity', [400, 100, null]),
  },
}; // prettier-ignore

describe('claims', () => {
  const claims = readClaims(body);
  it('gives each claim its own numbers, the control apart', () => {
    expect(claims[0]?.found).toEqual([{ label: 'end', text: '99 %', n: 400 }, { label: 'plateau', text: '55 %', n: null }]); // prettier-ignore
    expect(claims[0]?.controls.map((quantity) => quantity.label)).toEqual(['shuffled']);
    expect(claims[1]?.found).toEqual([]);
    expect(claims[1]?.figure).toBe('');
  });
  it('names what is still to be measured', () => {
    expect(claims.map((claim) => claim.missing)).toEqual([[], ['lens', 'grids']]);
  });
  it('counts verdicts', () => {
    expect(countVerdicts(claims)).toEqual([['replicates', 1], ['not measured yet', 1]]); // prettier-ignore
  });
});

describe('a row', () => {
  const claim = (paper: string, labels: string[]): Claim =>
    ({ paper, found: labels.map((label) => ({ label, text: '1', n: null })) }) as unknown as Claim;
  const shown = (paper: string, labels: string[]): string[] => quantitiesInRow(claim(paper, labels)).map(({ label }) => label);

  it('has the quantities at the n that the paper reports', () => {
    const labels = ['n = 32', 'n = 128', 'n = 1,024', 'n = 4,096'].map((at) => `transformer, ${at}`);
    expect(shown('n: test loss 128: 0.81, 1,024: 0.18', labels)).toEqual(['transformer, n = 128', 'transformer, n = 1,024']);
    expect(shown('n = 1,024: test loss .10, .75 at width 32, 512', ['loss, width 32', 'loss, width 64', 'loss, width 512'])).toEqual(['loss, width 32', 'loss, width 512']);
  });

  it('has the first ones where the paper names no n', () => {
    expect(shown('works', ['a', 'b, n = 5', 'c', 'd'])).toEqual(['a', 'b, n = 5', 'c']);
    expect(shown('losses of 0.32', ['a, n = 32', 'b, n = 0', 'c', 'd'])).toHaveLength(3); // a number with a point is no n
  });

  it('has as much of the reason as fits, whole sentences', () => {
    expect(headOf('Met. And the control too.')).toBe('Met. And the control too.');
    const long = `Loss is 0.25 at n = 2,048. ${'Much more is known. '.repeat(20)}`.trim();
    expect(headOf(long)).toMatch(/^Loss is 0\.25 at n = 2,048\. .*known\. …$/);
    expect(headOf(long).length).toBeLessThan(240);
  });
});
