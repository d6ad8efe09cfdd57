import { describe, expect, it } from 'vitest';
import type { Work } from '../api/client';
import { freeName, paceOf, tellWork } from './work';

const measuring: Work = {
  kind: 'measure', number: 1, run: 'small', results: ['chain'], status: 'at work', fraction: 0.756, seconds: 11.6, lines: ['75 %  patching the chain'],
}; // prettier-ignore

describe('work', () => {
  it('says how far it is, at what, and for how long', () => {
    expect(tellWork(measuring)).toBe('75 %, patching the chain, 12 s');
    expect(tellWork({ ...measuring, fraction: null, lines: [] })).toBe('starting …, 12 s');
  });

  it('tells the pace of a training from the last line about a step', () => {
    const lines = ['small: 139k parameters, saved in runs/small', 'step 100/3,000  loss 1.2000  accuracy 0.310  410 examples/s  2 min left at most', 'a warning'];
    expect(paceOf(lines)).toEqual(['step 100/3,000', 'loss 1.2000', 'accuracy 0.310', '410 examples/s', '2 min left at most']);
    expect(paceOf(['nothing yet'])).toEqual([]);
  });

  it('proposes a name that no run has', () => {
    expect(freeName('binding-tiny', ['binding-laptop'])).toBe('binding-tiny');
    expect(freeName('binding-tiny', ['binding-tiny', 'binding-tiny-2'])).toBe('binding-tiny-3');
  });
});
