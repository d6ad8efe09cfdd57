import { describe, expect, it } from 'vitest';
import { readProgram } from '../../program/program';
import { chanceOf, edgesOf, scoreEdges, type EdgeKind } from './edges';

const program = readProgram('a=5;b=a;c=3;d=b;#d:'); // positions: a 0, b 4, c 8, d 12; query 17, colon 18

describe('edges of a program', () => {
  it('lead from each used name to the two sides of the line that assigned it', () => {
    expect(edgesOf(program, 'name')).toEqual([{ query: 6, key: 0 }, { query: 14, key: 4 }, { query: 17, key: 12 }]);
    expect(edgesOf(program, 'value')).toEqual([{ query: 6, key: 2 }, { query: 14, key: 6 }, { query: 17, key: 14 }]);
  });
  it('point backwards only, and join the tokens that they name', () => {
    for (const kind of ['name', 'value', 'own', 'answer'] as EdgeKind[]) {
      for (const { query, key } of edgesOf(program, kind)) expect(key).toBeLessThan(query);
    }
    for (const { query, key } of edgesOf(program, 'name')) expect(program.text[query]).toBe(program.text[key]);
  });
  it('take the latest assignment of a name that is assigned again', () => {
    expect(edgesOf(readProgram('a=5;a=3;b=a;#b:', true), 'name')[0]).toEqual({ query: 10, key: 4 });
  });
});

describe('the score of a head', () => {
  const n = program.text.length;
  const uniform = Array.from({ length: n * n }, (_, index) => (index % n <= Math.floor(index / n) ? 1 / (Math.floor(index / n) + 1) : 0));
  it('is chance for one that looks everywhere alike', () => {
    const edges = edgesOf(program, 'value');
    expect(scoreEdges(uniform, n, edges)).toBeCloseTo(chanceOf(edges) ?? Number.NaN, 12);
  });
  it('is 1 for one that follows every edge, and nothing without edges', () => {
    const edges = edgesOf(program, 'name');
    const perfect = uniform.map(() => 0);
    for (const { query, key } of edges) perfect[query * n + key] = 1;
    expect(scoreEdges(perfect, n, edges)).toBe(1);
    expect(scoreEdges(perfect, n, [])).toBeNull();
  });
});
