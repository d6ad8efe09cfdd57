import { describe, expect, it } from 'vitest';
import type { Body, Value } from '../../api/body';
import cases from './moves-cases.json';
import { readMoves, sitesOf, tellMove, tellMoves, tellStrongest } from './moves';

/** A case as the server would send it. */
function bodyOf(one: (typeof cases)[number]): Body {
  const over = (dims: string[], values: readonly Value[]) => ({ dims, values: [...values], units: '' });
  const coords = Object.fromEntries(Object.entries(one.coords).map(([name, values]) => [name, over([name], values)]));
  const variables = Object.fromEntries(Object.entries(one.variables).map(([name, { dims, values }]) => [name, over(dims, values)]));
  return {
    title: 'What moves where', attrs: {}, command: '', python: '', sizes: one.sizes, variables,
    coords: one.spelled.length ? { ...coords, spelled: over(['position'], one.spelled) } : coords,
    provenance: { run: '', step: null, n: 1, seed: null, interval: '', note: '' },
  }; // prettier-ignore
}

describe('moves', () => {
  it.each(cases.map((one, index) => [index, one] as const))('of case %i are those that Python reads', (_, one) => {
    const found = readMoves(bodyOf(one)).map(({ key: _key, ...move }) => ({ ...move, effect: Number(move.effect.toFixed(4)) }));
    expect(found).toEqual(one.moves);
    expect(tellMoves(bodyOf(one))).toBe(one.finding);
  });
  const body = bodyOf(cases[0]!);
  const [move] = readMoves(body);
  it('are fewer where more is asked of them', () => {
    expect(readMoves(body, 0.9).length).toBeLessThan(readMoves(body).length);
    expect(readMoves(body, 0.9).every(({ effect }) => effect >= 0.9)).toBe(true);
  });
  it('name the sites that make them', () => {
    expect(sitesOf(move!, 3)).toEqual(move!.heads.map(({ head }) => `L${move!.layer}.H${head}@${move!.target}`));
    expect(sitesOf({ ...move!, heads: [] }, 2)).toHaveLength(2);
    expect(tellMove(move!)).toContain(`from ${move!.source} to ${move!.target}`);
  });
  it('know the head that does most by itself at each position, but for the one where the value stands anyway', () => {
    const told = tellStrongest(body, 'head', { what: 'value' });
    expect(told).toMatch(/^Strongest by itself: L\d\.H\d at .* \(\d\.\d\d\).* of the way to the other answer\.$/);
    expect(told).not.toContain('at rhs 1');
    const nothing = { ...body, variables: { ...body.variables, head: { ...body.variables.head!, values: body.variables.head!.values.map(() => 0) } } };
    expect(tellStrongest(nothing, 'head', { what: 'value' })).toMatch(/^No head by itself moves the answer/);
  });
});
