/** Where the lines of a program stand when it is drawn: a column for each depth, the queried chain straight along the top. */
import type { Program } from './program';

export interface Node {
  line: number; // the query's line is the last of the program
  text: string;
  column: number; // depth − 1; the query stands one further right
  row: number;
  onChain: boolean;
}
export interface Edge {
  from: number; // the line that takes a value
  to: number; // the line that it takes it from
  onChain: boolean;
}
export interface Layout {
  nodes: Node[]; // by line
  edges: Edge[];
  nColumns: number;
  nRows: number;
}

export function layOut(program: Program): Layout {
  const queryLine = program.nLines + 1;
  const references = [...program.references, program.queryLine];
  const chain = new Set([queryLine, ...program.chain]);
  const followers = new Map<number, number[]>(references.map((_, index) => [index + 1, []]));
  references.forEach((line, index) => line !== null && followers.get(line)?.push(index + 1));
  const chainFirst = (first: number, second: number): number =>
    Number(chain.has(second)) - Number(chain.has(first)) || first - second;
  const rows = new Map<number, number>();
  let nRows = 0;
  const place = (line: number): void => {
    rows.set(line, nRows); // a line stands beside the first that follows it
    const after = (followers.get(line) ?? []).sort(chainFirst);
    after.forEach(place);
    if (!after.length) nRows += 1;
  };
  references.flatMap((line, index) => (line === null ? [index + 1] : [])).sort(chainFirst).forEach(place);
  const column = (line: number): number => (line === queryLine ? program.depth : (program.depths[line - 1] ?? 1) - 1);
  const nodes = references.map((_, index): Node => {
    const line = index + 1;
    const assignment = program.assignments[index];
    const text = assignment ? `${assignment.variable}=${assignment.source}` : `#${program.query}:`;
    return { line, text, column: column(line), row: rows.get(line) ?? 0, onChain: chain.has(line) };
  });
  const edges = references.flatMap((to, index): Edge[] =>
    to === null ? [] : [{ from: index + 1, to, onChain: chain.has(index + 1) && chain.has(to) }],
  );
  return { nodes, edges, nColumns: 1 + Math.max(...nodes.map((node) => node.column)), nRows };
}
