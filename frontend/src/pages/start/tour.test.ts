import { describe, expect, it } from 'vitest';
import type { RunSummary } from '../../api/client';
import { hashToView } from '../../state/hash';
import { stepWithin, tourOf } from './tour';

const RUN = {
  name: 'binding-laptop',
  kinds: ['claims', 'programs'],
  steps: [0, 50, 200, 700, 1500, 1800, 3700],
  phases: [
    { name: 'random', first_step: 0, last_step: 100, accuracy: 0.06 },
    { name: 'heuristic', first_step: 200, last_step: 1600, accuracy: 0.55 },
  ],
} as RunSummary;
const PAGES = ['trajectory', 'program', 'checkpoint', 'compare', 'logits', 'patch', 'attention', 'subspace', 'claims'];

describe('the tour', () => {
  it('stands at saved steps of the run that is looked at', () => {
    for (const stop of tourOf(RUN, PAGES, 'a=5\n#a:', 'a=6\n#a:')) {
      const view = hashToView(stop.href);
      expect(view.page).toBe(stop.page);
      expect(view.run).toBe(RUN.name);
      for (const step of [view.step, view.a, view.b]) if (step !== null) expect(RUN.steps).toContain(step);
    }
    expect(hashToView(tourOf(RUN, ['compare'])[0]?.href ?? '')).toMatchObject({ a: 700, b: 3700 });
    expect(hashToView(tourOf(RUN, ['checkpoint'])[0]?.href ?? '').options['checkpoint.quantity']).toBe('followed_where_wrong');
    expect(hashToView(tourOf(RUN, ['patch'], 'a=5\n#a:')[0]?.href ?? '').program).toBe('a=5\n#a:');
  });
  it('leads only to pages that exist', () => {
    expect(tourOf(RUN, ['patch', 'runs']).map((stop) => stop.page)).toEqual(['patch']);
    expect(tourOf(RUN, PAGES).length).toBe(PAGES.length);
  });
  it('takes a step within a phase, in its midst or at its end', () => {
    expect(stepWithin(RUN, 'heuristic')).toBe(700);
    expect(stepWithin(RUN, 'heuristic', 1)).toBe(1500);
    expect(stepWithin(RUN, 'random', 0)).toBe(0);
  });
  it('exists for a run without phases', () => {
    expect(stepWithin({ ...RUN, phases: [] }, 'heuristic')).toBeNull();
    expect(tourOf({ ...RUN, phases: [] }, PAGES).length).toBe(PAGES.length);
  });
});

describe('the tour of a run on modular addition', () => {
  it('leads through the pages that are about sums', () => {
    const run = { ...RUN, name: 'assign-add', kinds: ['claims', 'sums'], phases: [{ name: 'addition', first_step: 50, last_step: 1500, accuracy: 0.5 }] };
    const stops = tourOf(run, [...PAGES, 'arithmetic', 'runs'], 'c=1 | c+2');
    expect(stops.map((stop) => stop.page)).toEqual(['trajectory', 'arithmetic', 'claims', 'runs']);
    expect(hashToView(stops[1]?.href ?? '')).toMatchObject({ step: 1500, program: 'c=1 | c+2' });
  });
});

describe('every tour', () => {
  it('ends at the page about symbols, which is about no run', () => {
    for (const kind of ['programs', 'sums', 'templates', 'claims']) {
      const last = tourOf({ ...RUN, kinds: [kind] }, [...PAGES, 'symbols']).at(-1);
      expect(hashToView(last?.href ?? '')).toMatchObject({ page: 'symbols', run: '' });
    }
    expect(tourOf({ ...RUN, kinds: ['claims', 'templates'] }, [...PAGES, 'runs']).map((stop) => stop.page)).toEqual(['trajectory', 'claims', 'runs']);
    expect(tourOf({ ...RUN, kinds: [] }, [...PAGES, 'runs']).map((stop) => stop.page)).toEqual(['trajectory', 'runs']);
  });
});
