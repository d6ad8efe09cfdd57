/** Counterfactual edits: the same program with one thing changed, and whether two programs can be patched into each other. */
import { buildProgram, DIGITS, isConstant, LETTERS, tokensOf, type Program } from './program';

/** Another constant on a line that has one. */
export function withConstant(program: Program, line: number, digit: number): Program {
  return withSource(program, line, String(digit));
}

/** Another constant at the root of the queried chain. */
export function withRootConstant(program: Program, digit: number): Program {
  return withConstant(program, program.rootLine, digit);
}

/** Another variable on the right of a line; it must be assigned before. */
export function withReference(program: Program, line: number, variable: string): Program {
  return withSource(program, line, variable);
}

/** The same lines, asked for another variable. */
export function withQuery(program: Program, variable: string): Program {
  return buildProgram(program.assignments, variable);
}

/** Two letters change places everywhere, so that the program means the same under other names. */
export function withNamesSwapped(program: Program, first: string, second: string): Program {
  const swap = (name: string): string => (name === first ? second : name === second ? first : name);
  const lines = program.assignments.map(({ variable, source }) => ({ variable: swap(variable), source: swap(source) }));
  return buildProgram(lines, swap(program.query));
}

/** Variables that a line could refer to: those that an earlier line assigns. */
export function namesBefore(program: Program, line: number): string[] {
  return [...new Set(program.assignments.slice(0, line - 1).map((earlier) => earlier.variable))];
}

/** Letters that no line uses yet. */
export function freeNames(program: Program): string[] {
  return [...LETTERS].filter((letter) => !program.assignments.some((line) => line.variable === letter));
}

function constantLines(program: Program): number[] {
  return program.assignments.flatMap((line, index) => (isConstant(line) ? [index + 1] : []));
}

export function referenceLines(program: Program): number[] {
  return program.assignments.flatMap((line, index) => (isConstant(line) ? [] : [index + 1]));
}

export const CHANGES = {
  root: 'the constant at the root',
  constant: 'another constant',
  reference: 'a reference',
  query: 'the queried name',
  names: 'two names, swapped everywhere',
  free: 'whatever I write',
} as const;
export type Kind = keyof typeof CHANGES;

/** One change: on which line (0 where none is meant), and the digit or the variable that comes there. */
export interface Change {
  kind: Kind;
  line: number;
  value: string;
}

/** The lines that a kind of change can be made on. */
export function linesFor(program: Program, kind: Kind): number[] {
  if (kind === 'constant') return constantLines(program).filter((line) => line !== program.rootLine);
  if (kind === 'reference') return referenceLines(program).filter((line) => namesBefore(program, line).length > 1);
  return kind === 'root' ? [program.rootLine] : [];
}

/** What may come there instead of what there is. */
export function valuesFor(program: Program, kind: Kind, line: number): string[] {
  const old = program.assignments[line - 1]?.source;
  if (kind === 'root' || kind === 'constant') return [...DIGITS].filter((digit) => digit !== old);
  if (kind === 'reference') return namesBefore(program, line).filter((name) => name !== old);
  const names = namesBefore(program, program.nLines + 1).filter((name) => name !== program.query);
  if (kind === 'query') return names;
  return kind === 'names' ? [...names, ...freeNames(program)].sort() : [];
}

/** The program with the change made. */
export function withChange(program: Program, { kind, line, value }: Change): Program {
  if (kind === 'query') return withQuery(program, value);
  if (kind === 'names') return withNamesSwapped(program, program.query, value);
  return kind === 'free' ? program : withSource(program, line, value);
}

/** Every change of a kind, on one line or on any. */
export function changesOf(program: Program, kind: Kind, line?: number): Change[] {
  const lines = line !== undefined ? [line] : kind === 'query' || kind === 'names' ? [0] : linesFor(program, kind);
  return lines.flatMap((at) => valuesFor(program, kind, at).map((value) => ({ kind, line: at, value })));
}

/** The first change of a kind that gives another answer, or else the first there is. */
export function usualChange(program: Program, kind: Kind, line?: number): Change | undefined {
  const all = changesOf(program, kind, line);
  return all.find((change) => withChange(program, change).answer !== program.answer) ?? all[0];
}

/** Which one change leads from one program to another; `free` when it takes more. */
export function findChange(base: Program, counterfactual: Program): Change {
  const free: Change = { kind: 'free', line: 0, value: '' };
  if (refusePair(base, counterfactual) !== null) return free;
  const all = (Object.keys(CHANGES) as Kind[]).flatMap((kind) => changesOf(base, kind));
  return all.find((change) => withChange(base, change).text === counterfactual.text) ?? free;
}

/** Why a patch cannot use these two, in the words of `pair_programs`; null when it can. */
export function refusePair(base: Program, counterfactual: Program): string | null {
  if (base.nLines !== counterfactual.nLines) {
    return `the two programs have ${base.nLines} and ${counterfactual.nLines} lines; write two of equal length.`;
  }
  if (base.text === counterfactual.text) {
    return 'the counterfactual is the same program as the base; change a constant or a variable in it.';
  }
  return null;
}

/** Token positions at which two programs of one length differ. */
export function differences(base: Program, counterfactual: Program): Set<number> {
  const other = tokensOf(counterfactual);
  const changed = tokensOf(base).filter((token) => token.id !== other[token.position]?.id);
  return new Set(changed.map((token) => token.position));
}

function withSource(program: Program, line: number, source: string): Program {
  const lines = program.assignments.map((old, index) => (index === line - 1 ? { ...old, source } : old));
  return buildProgram(lines, program.query);
}
