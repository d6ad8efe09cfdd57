import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { readProgram } from '../../program/program';
import { cellsOf, kindOf, MOST_SITES, pickSite, placeSites, namedPositions, readSites, siteOf } from './sites';

function body(sizes: Record<string, number>, names: string[] = []): Body {
  const provenance = { run: '', step: null, n: null, seed: null, interval: '', note: '' };
  const coords: Body['coords'] = names.length ? { position: { dims: ['position'], units: '', values: names } } : {};
  return { title: '', sizes, coords, variables: {}, attrs: {}, provenance, command: '', python: '' };
}

describe('cells and sites', () => {
  it('know which grid they are in', () => {
    expect(kindOf(body({ position: 3, layer: 2 }))).toBe('residual');
    expect(kindOf(body({ layer: 2, position: 2, step: 1 }, ['rhs 1', 'colon']))).toBe('chain');
    expect(kindOf(body({ layer: 2, head: 2 }))).toBe('heads');
    expect(kindOf(body({ layer: 2 }))).toBe('mlps');
  });
  it('are each other’s names in every grid', () => {
    const layers = ['1', '0'];
    for (const sizes of [{ position: 3, layer: 2 }, { layer: 2, head: 4 }, { layer: 2 }] as Record<string, number>[]) {
      const grid = body(sizes);
      expect(cellsOf(grid, layers, [siteOf(kindOf(grid), '1', 'head' in sizes || 'position' in sizes ? '2' : '')])).toEqual(
        new Set(['head' in sizes || 'position' in sizes ? '0,2' : '0,0']),
      );
    }
  });
});

describe('choosing', () => {
  it('takes one cell alone, joins others, and takes them out again', () => {
    let sites = pickSite([], 'L1.H0', false);
    sites = pickSite(sites, 'L2.H1', true);
    expect(sites).toEqual(['L1.H0', 'L2.H1']);
    expect(pickSite(sites, 'L1.H0', true)).toEqual(['L2.H1']);
    expect(pickSite(sites, 'L3.H1', false)).toEqual(['L3.H1']);
    expect(pickSite(['L3.H1'], 'L3.H1', false)).toEqual([]);
  });
  it('never exceeds what a question may hold, nor names a site twice', () => {
    const many = Array.from({ length: 70 }, (_, index) => `L0.resid_pre@${index}`).join(';');
    expect(readSites(many)).toHaveLength(MOST_SITES);
    expect(readSites('L1.H0; L1.H0;;')).toEqual(['L1.H0']);
  });
});

describe('named positions of a program', () => {
  const program = readProgram('c=7;d=3;a=5;b=a;e=9;#b:');
  it('stand where the chain does; the distractor is the nearest line after the root, or before it', () => {
    expect(namedPositions(program)).toEqual({ 'lhs 1': 8, 'rhs 1': 10, 'lhs 2': 12, 'rhs 2': 14, distractor: 18, query: 21, colon: 22 });
    expect(namedPositions(readProgram('c=7;d=3;a=5;#a:')).distractor).toBe(6);
  });
  it('are put in for their names', () => {
    expect(placeSites(['L2.resid_pre@rhs 2', 'L1.H0', 'L0.resid_pre@3', 'L2.resid_pre@rhs 3'], program).map(({ placed }) => placed)).toEqual([
      'L2.resid_pre@14', 'L1.H0', 'L0.resid_pre@3', null,
    ]); // prettier-ignore
  });
});
