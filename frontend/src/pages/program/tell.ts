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

/** The whole chain in one sentence: 'w is 4: w (line 16) → x (line 9) → e (line 3), where 4 stands.' */
export function tellChain(program: Program): string {
  const names = program.chain.map((line) => `${program.assignments[line - 1]?.variable} (line ${line})`);
  return `${program.query} is ${program.answer}: ${names.join(' → ')}, where ${program.answer} stands.`;
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

/** What a run's programs looked like in training. */
export interface Trained {
  lines?: number;
  min_lines?: number | null;
  max_depth?: number;
  n_variables?: number;
  n_constants?: number;
}

/** How a program differs from those of training, in a sentence; empty where it does not. */
export function tellUnlike(program: Program, { lines, min_lines, max_depth, n_constants }: Trained): string {
  const unlike: string[] = [];
  const least = min_lines ?? lines;
  if (lines !== undefined && least !== undefined && (program.nLines > lines || program.nLines < least)) {
    unlike.push(`it has ${plural(program.nLines, 'line')} where training had ${least === lines ? lines : `${least} to ${lines}`}`);
  }
  if (max_depth !== undefined && program.depth > max_depth) unlike.push(`its chain is ${program.depth} deep where training went to ${max_depth}`);
  const digits = program.assignments.filter(({ source }) => /\d/.test(source) && n_constants !== undefined && Number(source) >= n_constants);
  if (digits.length) unlike.push(`training had the digits 0 to ${(n_constants ?? 10) - 1} alone`);
  return unlike.length ? `This program is unlike those of training: ${unlike.join('; ')}. An answer to it says little about what was learned.` : '';
}
