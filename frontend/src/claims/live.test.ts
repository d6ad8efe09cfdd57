import { describe, expect, it } from 'vitest';
import { hashToView, START } from '../state/hash';
import { PAGES } from '../pages/page';
import { LIVE_CLAIMS, liveOf } from './live';

describe('the live place of a claim', () => {
  const view = { ...START, page: 'claims', run: 'made', step: 300, options: { 'claims.open': 'VB3' } };
  it('is a page that there is, with the run and the step at hand', () => {
    for (const claim of LIVE_CLAIMS) {
      const there = hashToView(liveOf(claim, view)?.href ?? '');
      expect(PAGES.map(({ name }) => name)).toContain(there.page);
      expect([there.run, there.step, there.options['claims.open']]).toEqual(['made', 300, undefined]);
    }
  });
  it('of VB3 is the mean grid of one depth', () => {
    expect(liveOf('VB3', view)?.href).toContain('patch.depth=2');
    expect(liveOf('AS1', view)).toBeNull();
  });
});
