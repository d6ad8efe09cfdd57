import { describe, expect, it } from 'vitest';
import type { Body } from '../api/body';
import { countVerdicts, readClaims } from './claims';

const over = (dim: string, values: unknown[]) => ({ dims: [dim], values: values as string[], units: '' });
const words = ['title', 'paper', 'reason', 'statement', 'measure', 'criterion', 'control', 'fixed', 'results'];
const body: Body = {
  title: 'Claims', attrs: {}, command: '', python: '', sizes: { claim: 2, quantity: 3 },
  provenance: { run: 'made', step: 9, n: null, seed: 0, interval: '', note: '' },
  coords: { claim: over('claim', ['VB1', 'VB2']) },
  variables: {
    ...Object.fromEntries(words.map((word) => [word, over('claim', [`${word} 1`, `${word} 2`])])),
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
  it('counts verdicts', () => {
    expect(countVerdicts(claims)).toEqual([['replicates', 1], ['not measured yet', 1]]); // prettier-ignore
  });
});
