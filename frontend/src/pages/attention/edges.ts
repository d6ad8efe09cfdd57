/** Where a program itself says that a token should look, and how much of a head's attention goes there. */
import { positionOf, type Program } from '../../program/program';

/** A query position and the key position that the program points it to. */
export interface Edge {
  query: number;
  key: number;
}

export type EdgeKind = 'name' | 'value' | 'own' | 'answer';

export const EDGES: Record<EdgeKind, { title: string; meaning: string }> = {
  name: { title: 'name → where it was assigned', meaning: 'from a used variable to the left-hand side of the line that assigned it' },
  value: { title: 'name → what it was assigned', meaning: 'from a used variable to the right-hand side of the line that assigned it' },
  own: { title: 'right side → its own left side', meaning: 'from the right-hand side of a line to the variable that the line assigns' },
  answer: { title: 'colon → the queried line', meaning: 'from the colon, where the model answers, to the query and to the right-hand side of the queried line' },
};

/** The edges of one kind in a program.

    edgesOf(readProgram('a=5;b=a;#b:'), 'name')  // [{query: 6, key: 0}, {query: 9, key: 4}] */
export function edgesOf(program: Program, kind: EdgeKind): Edge[] {
  const lines = program.assignments.map((_, index) => index + 1);
  if (kind === 'own') return lines.map((line) => ({ query: positionOf(program, 'rhs', line), key: positionOf(program, 'lhs', line) }));
  if (kind === 'answer') {
    const colon = positionOf(program, 'colon');
    return [positionOf(program, 'query'), positionOf(program, 'rhs', program.queryLine)].map((key) => ({ query: colon, key }));
  }
  const side = kind === 'name' ? 'lhs' : 'rhs';
  const inside = lines.flatMap((line) => {
    const reference = program.references[line - 1];
    return reference ? [{ query: positionOf(program, 'rhs', line), key: positionOf(program, side, reference) }] : [];
  });
  return [...inside, { query: positionOf(program, 'query'), key: positionOf(program, side, program.queryLine) }];
}

/** The mean weight [query × key, row by row] that goes along the edges; null where there are none. */
export function scoreEdges(pattern: readonly (number | null)[], nPositions: number, edges: readonly Edge[]): number | null {
  if (!edges.length) return null;
  return edges.reduce((sum, { query, key }) => sum + (pattern[query * nPositions + key] ?? 0), 0) / edges.length;
}

/** The same for a head that looks everywhere alike. */
export function chanceOf(edges: readonly Edge[]): number | null {
  return edges.length ? edges.reduce((sum, { query }) => sum + 1 / (query + 1), 0) / edges.length : null;
}
