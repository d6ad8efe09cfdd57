import { describe, expect, it } from 'vitest';
import type { RunSummary } from '../api/client';
import { hashToView, START, viewToHash } from '../state/hash';
import { stepWithin } from '../reading/phases';
import { leaveHash, placeOnTour, stopHash, tourOf } from './tour';

const RUN = {
  name: 'binding-laptop',
  kinds: ['claims', 'programs'],
  steps: [0, 50, 200, 700, 1500, 1800, 3700],
  phases: [
    { name: 'random', first_step: 0, last_step: 100, accuracy: 0.06 },
    { name: 'heuristic', first_step: 200, last_step: 1600, accuracy: 0.55 },
  ],
} as RunSummary;
const PAGES = ['start', 'trajectory', 'program', 'checkpoint', 'patch', 'attention', 'subspace', 'arithmetic', 'symbols', 'claims', 'runs'];
const pagesOf = (run: RunSummary): string[] => tourOf(run, PAGES).map((stop) => stop.page);

describe('the tour', () => {
  it('stands at saved steps of the run that is looked at, with the reader’s programs', () => {
    for (const stop of tourOf(RUN, PAGES, 'a=5\n#a:', 'a=6\n#a:')) {
      expect(stop.view).toMatchObject({ page: stop.page, run: RUN.name, program: 'a=5\n#a:', counterfactual: 'a=6\n#a:' });
      if (stop.view.step !== null) expect(RUN.steps).toContain(stop.view.step);
    }
    expect(tourOf(RUN, ['program'])[0]?.view.step).toBe(700);
  });
  it('leads only to pages that exist, and in every family through several', () => {
    expect(tourOf(RUN, ['patch', 'runs']).map((stop) => stop.page)).toEqual(['patch']);
    expect(pagesOf(RUN)).toEqual(['start', 'program', 'trajectory', 'checkpoint', 'patch', 'attention', 'subspace', 'claims']);
    expect(new Set(pagesOf({ ...RUN, kinds: ['claims', 'sums'] }))).toEqual(new Set(['start', 'trajectory', 'arithmetic', 'claims']));
    expect(pagesOf({ ...RUN, kinds: ['claims', 'templates'] })).toEqual(['trajectory', 'symbols', 'symbols', 'claims', 'runs']);
    expect(pagesOf({ ...RUN, kinds: [] })).toEqual(['trajectory', 'runs']);
  });
  it('exists for a run without phases', () => {
    expect(pagesOf({ ...RUN, phases: [] }).length).toBe(8);
  });
});

describe('a stop in the address', () => {
  const stops = tourOf(RUN, PAGES);
  const before = viewToHash({ ...START, run: 'other', step: 12, program: 'a=5\n#a:', options: { 'patch.metric': 'kl' } });

  it('is found again, with the way back to the page as it was', () => {
    stops.forEach((stop, index) => {
      const view = hashToView(stopHash(stop, index, before));
      expect(placeOnTour(view, stops)).toMatchObject({ index, from: before, away: false });
      expect(leaveHash(view)).toBe(before);
    });
  });
  it('knows when the reader has gone elsewhere', () => {
    const view = hashToView(stopHash(stops[2]!, 2, before));
    expect(placeOnTour({ ...view, page: 'runs' }, stops)).toMatchObject({ index: 2, away: true });
    const sums = tourOf({ ...RUN, kinds: ['sums'] }, PAGES);
    const at = sums.findIndex((stop) => stop.view.options['arithmetic.tab'] === 'weights');
    const weights = hashToView(stopHash(sums[at]!, at, before));
    expect(placeOnTour(weights, sums)?.away).toBe(false);
    expect(placeOnTour({ ...weights, options: { ...weights.options, 'arithmetic.tab': 'sum' } }, sums)?.away).toBe(true);
  });
  it('is none without a number, and the nearest where the number is too large', () => {
    expect(placeOnTour(START, stops)).toBeNull();
    expect(placeOnTour({ ...START, options: { 'tour.stop': 'two' } }, stops)).toBeNull();
    expect(placeOnTour({ ...START, options: { 'tour.stop': '99' } }, stops)?.index).toBe(stops.length - 1);
    expect(placeOnTour({ ...START, options: { 'tour.stop': '-3' } }, stops)?.index).toBe(0);
  });
  it('leaves the page where it is when the address does not say where the reader came from', () => {
    expect(leaveHash({ ...START, page: 'patch', options: { 'tour.stop': '3', 'patch.metric': 'kl' } })).toBe('#/1/patch?patch.metric=kl');
  });
});

describe('a step within a phase', () => {
  it('is in its midst, at its end or its start', () => {
    expect(stepWithin(RUN, 'heuristic')).toBe(700);
    expect(stepWithin(RUN, 'heuristic', 1)).toBe(1500);
    expect(stepWithin(RUN, 'random', 0)).toBe(0);
    expect(stepWithin({ ...RUN, phases: [] }, 'heuristic')).toBeNull();
  });
});
