import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { curvesOf, ownSeries, scaledSeries, seedSeries, show, tellTurn, tellTurns, whichLeads } from './curves';

const labelled = (dims: string[], values: (number | string | null)[]) => ({ dims, values, units: '' });
const BODY = {
  title: 'What turns when',
  sizes: { curve: 3, step: 3 },
  coords: {
    curve: labelled(['curve'], ['late', 'early', 'flat']),
    step: labelled(['step'], [0, 100, 200]),
    title: labelled(['curve'], ['a late one', 'an early one', 'a flat one']),
    explains: labelled(['curve'], ['', 'because', '']),
    unit: labelled(['curve'], ['fraction', '1', '1']),
  },
  variables: {
    value: labelled(['curve', 'step'], [0.5, 0.5, 1, 8, 4, null, 1, 1, 1]),
    low: labelled(['curve', 'step'], [0.4, 0.4, 0.9, null, null, null, null, null, null]),
    high: labelled(['curve', 'step'], [0.6, 0.6, 1, null, null, null, null, null, null]),
    turned_at: labelled(['curve'], [200, 100, null]),
    turned_low: labelled(['curve'], [150, null, null]),
    turned_high: labelled(['curve'], [200, null, null]),
    start: labelled(['curve'], [0.5, 8, 1]),
    end: labelled(['curve'], [1, 4, 1]),
  },
  attrs: {},
  provenance: { run: 'made', step: null, n: null, seed: null, interval: '', note: '' },
} as unknown as Body;

const [early, late, flat] = curvesOf(BODY) as [ReturnType<typeof curvesOf>[0], ReturnType<typeof curvesOf>[0], ReturnType<typeof curvesOf>[0]];

describe('curves of a run', () => {
  it('stand in the order in which they turn, what does not change last', () => {
    expect(curvesOf(BODY).map(({ id }) => id)).toEqual(['early', 'late', 'flat']);
    expect(early.explains).toBe('because');
  });
  it('are drawn where they were measured, with intervals where they have some', () => {
    expect(ownSeries(BODY, early)).toMatchObject({ x: [0, 100], y: [8, 4], marked: true });
    expect(ownSeries(BODY, early).low).toBeUndefined();
    expect(ownSeries(BODY, late).low).toEqual([0.4, 0.4, 0.9]);
  });
  it('go from 0 on the plateau to 1 at the end, whatever their direction', () => {
    expect(scaledSeries(BODY, early, 0)?.y.map((value) => Math.abs(value ?? NaN))).toEqual([0, 1]);
    expect(scaledSeries(BODY, late, 1)?.y).toEqual([0, 0, 1]);
    expect(scaledSeries(BODY, flat, 2)).toBeNull();
  });
  it('say which of two leads, unless intervals overlap or one does not change', () => {
    expect(whichLeads(late, early)).toContain('“an early one” turns at step 100');
    expect(whichLeads(late, early)).toContain('leads by 100 steps');
    expect(whichLeads({ ...early, high: 160 }, late)).toContain('neither leads');
    expect(whichLeads(early, flat)).toContain('does not change');
    expect(whichLeads(early, { ...late, turned: 100 })).toBe('Both turn at step 100.');
  });
  it('have a band of seeds only where experiments recorded one', () => {
    expect(seedSeries(null, 'late')).toEqual([]);
    expect(seedSeries(BODY, 'late')).toEqual([]);
  });
  it('are written in their unit', () => {
    expect([show(0.5, 'fraction'), show(1234.5, '1'), show(null, '1')]).toEqual(['50 %', '1,230', '–']);
  });
});

it('says where a curve turns, and what turns first and last', () => {
  expect(tellTurn(late)).toBe('Half way at step 200 (150 to 200): from 50 % on the plateau to 100 % at the end.');
  expect(tellTurn(flat)).toBe('Does not change after the plateau: 1 there, 1 at the end.');
  expect(tellTurns(BODY)).toBe('First turns “an early one”, at step 100; last “a late one”, at step 200.');
});
