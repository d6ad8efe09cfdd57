import { describe, expect, it } from 'vitest';
import cases from './cases.json';
import { layOut } from './layout';
import { parseProgram } from './program';

const programs = cases.programs
  .filter((one) => 'facts' in one)
  .map((one) => parseProgram(one.text, one.reassignment));

describe('a drawn program', () => {
  it.each(programs)('$text keeps lines apart, in columns by depth, with its chain straight along the top', (program) => {
    const { nodes, edges, nColumns, nRows } = layOut(program);
    expect(nodes).toHaveLength(program.nLines + 1);
    expect(new Set(nodes.map((node) => `${node.row},${node.column}`)).size).toBe(nodes.length);
    const query = nodes.at(-1);
    expect([query?.row, query?.column]).toEqual([0, program.depth]);
    for (const [index, line] of program.chain.entries()) {
      expect(nodes[line - 1]).toMatchObject({ row: 0, column: program.depth - 1 - index, onChain: true });
    }
    expect(nodes.filter((node) => node.onChain)).toHaveLength(program.depth + 1);
    for (const edge of edges) {
      expect(nodes[edge.to - 1]?.column).toBe((nodes[edge.from - 1]?.column ?? 0) - 1);
    }
    expect(edges).toHaveLength(1 + program.references.filter((line) => line !== null).length);
    expect(edges.filter((edge) => edge.onChain)).toHaveLength(program.depth);
    expect(nRows).toBe(1 + Math.max(...nodes.map((node) => node.row)));
    expect(nColumns).toBe(1 + Math.max(...nodes.map((node) => node.column)));
  });
});
