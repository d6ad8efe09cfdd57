/** One binding program in the reader's browser: the same grammar, sentences and facts as `bindscope.tasks.binding.program`.

    parseProgram('a=5\nb=a\nc=3\n#b:').chain  // [2, 1]

Lines are counted from 1. A reference takes the value that its variable holds at that line. */
export const DIGITS = '0123456789';
export const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
/** Every token; its id is its index here. */
export const VOCABULARY: readonly string[] = [...DIGITS, ...LETTERS, '=', '\n', '#', ':'];
const LINE_WIDTH = 4; // tokens of an assignment, with its line break
const LINE_PARTS = ['lhs', 'equals', 'rhs', 'newline'] as const;
const QUERY_PARTS = ['hash', 'query', 'colon'] as const;

export type Part = (typeof LINE_PARTS)[number] | (typeof QUERY_PARTS)[number];

/** The first mistake in a program; `line` is where it stands, null when there is no line to point at. */
export class ProgramError extends Error {
  constructor(
    message: string,
    readonly line: number | null = null,
  ) {
    super(message);
  }
}

export interface Assignment {
  readonly variable: string;
  readonly source: string; // a digit or another variable
}

/** One character of a program, which is one token. */
export interface Token {
  readonly id: number;
  readonly symbol: string; // the character itself
  readonly shown: string; // as it can stand in a line: a line break is '\n'
  readonly position: number;
  readonly line: number; // from 1; the query's line is the last
  readonly part: Part;
}

/** Assignments and a query, with everything that follows from them. */
export interface Program {
  readonly assignments: readonly Assignment[];
  readonly query: string;
  readonly text: string; // character i is token i
  readonly nLines: number; // the query's line is not counted
  readonly references: readonly (number | null)[]; // by line: the line whose value is taken, null for a constant
  readonly values: readonly number[]; // by line: the digit that it assigns
  readonly depths: readonly number[]; // by line: assignments on the chain from it to its constant
  readonly queryLine: number; // the line that last assigned the queried variable
  readonly chain: readonly number[]; // from the queried line to the constant
  readonly answer: number;
  readonly depth: number;
  readonly rootLine: number;
  readonly distractorLines: readonly number[];
  readonly distractorChains: readonly (readonly number[])[];
}

/** As `parseProgram`, with ';' for line breaks as in addresses and on the command line. */
export function readProgram(text: string, reassignment = false): Program {
  return parseProgram(text.replaceAll('\\n', '\n').replaceAll(';', '\n'), reassignment);
}

/** Read a program from its text; the first mistake is a `ProgramError` that names its line. */
export function parseProgram(text: string, reassignment = false): Program {
  const lines = stripEnd(text).split('\n').map(stripEnd);
  if (lines.length === 1 && lines[0] === '') {
    throw new ProgramError(
      "the program is empty: write lines such as 'a=5' and end with a query such as '#a:'.",
    );
  }
  const assignments: Assignment[] = [];
  const assigned = new Map<string, number>();
  for (const [index, line] of lines.entries()) {
    const number = index + 1;
    checkCharacters(number, line);
    if (line.startsWith('#')) {
      const query = parseQuery(number, line);
      if (number < lines.length) {
        throw new ProgramError(`line ${number + 1}: nothing may follow the query on line ${number}.`, number + 1);
      }
      return buildProgram(assignments, query);
    }
    const assignment = parseAssignment(number, line);
    checkAssignedBefore(number, assignment, assigned);
    const first = assigned.get(assignment.variable);
    if (first !== undefined && !reassignment) {
      const name = assignment.variable;
      const sentence = `line ${number}: '${name}' is assigned twice, first on line ${first}; choose another letter.`;
      throw new ProgramError(sentence, number);
    }
    assignments.push(assignment);
    assigned.set(assignment.variable, number);
  }
  const last = lines.length;
  throw new ProgramError(`line ${last}: no query follows; end the program with a line such as '#a:'.`, last);
}

/** A program from its parts; a variable that is used or asked for before it is assigned is an error. */
export function buildProgram(assignments: readonly Assignment[], query: string): Program {
  const latest = new Map<string, number>();
  const references: (number | null)[] = [];
  const values: number[] = [];
  const depths: number[] = [];
  for (const [index, assignment] of assignments.entries()) {
    checkAssignedBefore(index + 1, assignment, latest);
    const reference = latest.get(assignment.source) ?? null;
    references.push(reference);
    values.push(reference === null ? Number(assignment.source) : (values[reference - 1] ?? 0));
    depths.push(reference === null ? 1 : (depths[reference - 1] ?? 0) + 1);
    latest.set(assignment.variable, index + 1);
  }
  const nLines = assignments.length;
  const queryLine = latest.get(query);
  if (queryLine === undefined) {
    throw new ProgramError(`line ${nLines + 1}: '${query}' is queried but never assigned.`, nLines + 1);
  }
  const chain = traceChain(references, queryLine);
  const lines = assignments.map((_, index) => index + 1);
  return {
    assignments,
    query,
    text: assignments.map((line) => `${line.variable}=${line.source}\n`).join('') + `#${query}:`,
    nLines,
    references,
    values,
    depths,
    queryLine,
    chain,
    answer: values[queryLine - 1] ?? 0,
    depth: chain.length,
    rootLine: chain[chain.length - 1] ?? queryLine,
    distractorLines: lines.filter((line) => !chain.includes(line)),
    distractorChains: lines
      .filter((line) => !references.includes(line) && line !== queryLine)
      .map((line) => traceChain(references, line)),
  };
}

/** Every token with where it stands. */
export function tokensOf(program: Program): Token[] {
  return [...program.text].map((symbol, position) => {
    const index = Math.min(Math.floor(position / LINE_WIDTH), program.nLines);
    const part = (index < program.nLines ? LINE_PARTS : QUERY_PARTS)[position - LINE_WIDTH * index];
    return {
      id: VOCABULARY.indexOf(symbol),
      symbol,
      shown: showSymbol(symbol),
      position,
      line: index + 1,
      part: part ?? 'colon',
    };
  });
}

/** A token as it can stand in a line of text. */
export function showSymbol(symbol: string): string {
  return symbol === '\n' ? '\\n' : symbol;
}

/** Where a part of a line stands among the tokens; for a part of the query any line will do. */
export function positionOf(program: Program, part: Part, line = 1): number {
  const inQuery = (QUERY_PARTS as readonly string[]).indexOf(part);
  if (inQuery >= 0) return LINE_WIDTH * program.nLines + inQuery;
  return LINE_WIDTH * (line - 1) + (LINE_PARTS as readonly string[]).indexOf(part);
}

function traceChain(references: readonly (number | null)[], line: number): number[] {
  const chain = [line];
  for (let next = references[line - 1]; next != null; next = references[next - 1]) chain.push(next);
  return chain;
}

function checkCharacters(number: number, line: string): void {
  for (const character of line) {
    if (VOCABULARY.includes(character)) continue;
    const hint = SPACE.test(character) ? ' (write lines without blanks)' : '';
    throw new ProgramError(
      `line ${number}: unknown character ${quote(character)}${hint}; a program uses a-z, 0-9, '=', '#' and ':'.`,
      number,
    );
  }
}

function parseQuery(number: number, line: string): string {
  const match = /^#([a-z]):$/.exec(line);
  if (match?.[1]) return match[1];
  const sentence = `line ${number}: a query is '#', one letter and ':', such as '#a:', not '${line}'.`;
  throw new ProgramError(sentence, number);
}

function parseAssignment(number: number, line: string): Assignment {
  const fail = (what: string): never => {
    throw new ProgramError(`line ${number}: ${what}`, number);
  };
  if (!line) fail("the line is empty; write an assignment such as 'a=5'.");
  const equals = line.indexOf('=');
  if (equals < 0) fail(`'=' is missing in '${line}'; write an assignment such as 'a=5'.`);
  const [variable, source] = [line.slice(0, equals), line.slice(equals + 1)];
  if (!/^[a-z]$/.test(variable)) fail(`the left of '=' must be one letter, not '${variable}'.`);
  if (!/^[a-z0-9]$/.test(source)) fail(`the right of '=' must be one letter or one digit, not '${source}'.`);
  return { variable, source };
}

export function isConstant(assignment: Assignment): boolean {
  return DIGITS.includes(assignment.source);
}

function checkAssignedBefore(number: number, assignment: Assignment, assigned: ReadonlyMap<string, number>): void {
  if (isConstant(assignment) || assigned.has(assignment.source)) return;
  throw new ProgramError(`line ${number}: '${assignment.source}' is used before it is assigned.`, number);
}

/** What Python counts as blank, which is not quite what JavaScript does. */
const BLANKS = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const SPACE = new RegExp(`^[${BLANKS}]$`, 'u');
const BLANK_END = new RegExp(`[${BLANKS}]+$`, 'u');

function stripEnd(text: string): string {
  return text.replace(BLANK_END, '');
}

/** A character between quotes as Python writes it: what cannot be seen by its number. */
function quote(character: string): string {
  if (character === "'") return `"'"`;
  const named: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\r': '\\r', '\n': '\\n' };
  const code = character.codePointAt(0) ?? 0;
  const hidden = character !== ' ' && /[\p{C}\p{Z}]/u.test(character);
  return `'${named[character] ?? (hidden ? escapeCode(code) : character)}'`;
}

function escapeCode(code: number): string {
  const digits = code.toString(16);
  if (code <= 0xff) return `\\x${digits.padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
}
