/** What the browser can answer by itself, and the command for what it cannot. */
import { oneLine, toCommand, writeCommand, type Given, type Name } from '../api/render';

export const OPERATIONS: ReadonlySet<string> = new Set(['predict', 'lens', 'attention', 'ablate', 'patch', 'grid', 'moves', 'sum', 'transplant', 'kernel', 'samples']);
const ELSEWHERE: Readonly<Record<string, Name>> = { sample: 'Sample', project: 'Project', swap: 'Swap', edges: 'Edges', meanmoves: 'Moves', ablations: 'Ablate' };

/** The command that does the same on the reader's own machine. */
export function commandFor(operation: string, question: object): string {
  const written = ([name, value]: [string, Given]): [string, Given] => [name, typeof value === 'string' ? oneLine(value) : value];
  const asked = Object.fromEntries(Object.entries(question).map(written));
  const name = ELSEWHERE[operation];
  return name ? toCommand(name, asked) : writeCommand('serve', asked.run == null ? [] : [String(asked.run)]);
}
