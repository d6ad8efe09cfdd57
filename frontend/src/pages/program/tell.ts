/** Sentences about a program, for the readout of the graph and for those who hear it. */
import type { Program } from '../../program/program';

export function tellLine(program: Program, line: number): string {
  const assignment = program.assignments[line - 1];
  if (!assignment) {
    return `Line ${line}: #${program.query}: asks for '${program.query}', which line ${program.queryLine} assigned. The answer is ${program.answer}.`;
  }
  const reference = program.references[line - 1];
  const depth = program.depths[line - 1];
  const origin = reference == null ? 'a constant' : `takes the value of line ${reference}`;
  const role = program.chain.includes(line)
    ? line === program.rootLine
      ? 'It is the root of the queried chain.'
      : 'It is on the queried chain.'
    : 'The answer does not depend on it.';
  return `Line ${line}: ${assignment.variable}=${assignment.source}, ${origin}; holds ${program.values[line - 1]}, depth ${depth}. ${role}`;
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}
