/** One sum in the reader's browser: the same grammar, sentences and facts as `bindscope.tasks.assign_add.sequence`.

    parseSum('c=1 b=17 | b+19', { modulus: 59, nVariables: 12, operator: '+' }).answer  // 36

Columns 0 to 11 hold up to six `variable number` blocks with PADs in the gaps, then come the operator, the operands and the
equals sign at which the answer is read. */
import { combineWith, isOperator, symbolOf } from './operators';

export const N_PREFIX = 12;
export const N_POSITIONS = 16;
export const OPERAND_POSITIONS = [13, 14] as const;
export const PAD = 'PAD';
const PAD_TEXT = '_';
export const MAX_SUM = 200; // characters that are read

/** What a run's task says about its sums. */
export interface SumFormat {
  readonly modulus: number;
  readonly nVariables: number;
  readonly operator: string;
}

/** The first mistake in a sum; `column` is where it stands, counted from 1. */
export class SumError extends Error {
  constructor(
    message: string,
    readonly column: number,
  ) {
    super(message);
  }
}

export interface Operand {
  readonly variable: string | null; // null: a number is written there
  readonly value: number;
  readonly position: number;
  readonly valuePosition: number; // where its number is written
}

export interface Sum {
  readonly text: string; // as it is written out again: PADs after the last assignment left out
  readonly tokens: readonly number[];
  readonly symbols: readonly string[];
  readonly assignments: readonly { variable: string; value: number; position: number }[];
  readonly operands: readonly [Operand, Operand];
  readonly answer: number;
}

/** Whether sums of this kind are understood here. */
export function isKnown(format: SumFormat): boolean {
  return isOperator(format.operator);
}

/** Every token; its id is its index here. */
export function vocabularyOf({ modulus, operator, nVariables }: SumFormat): string[] {
  return [...Array.from({ length: modulus }, (_, number) => String(number)), symbolOf(operator), '=', PAD, ...variablesOf(nVariables)];
}

export function variablesOf(nVariables: number): string[] {
  return [...'abcdefghijklmnopqrstuvwxyz'.slice(0, nVariables)];
}

/** Read a sum; the first mistake is a `SumError` that names its column. */
export function parseSum(text: string, format: SumFormat): Sum {
  const bar = text.indexOf('|');
  if (bar < 0) {
    const column = lengthOf(text) + 1;
    throw new SumError(`column ${column}: no '|' before the sum; write for example 'c=1 b=17 | b+19'.`, column);
  }
  const prefix = parsePrefix(text.slice(0, bar), format);
  const operands = parseOperands(text.slice(bar + 1), lengthOf(text.slice(0, bar)) + 2, prefix, format);
  const pads = Array.from({ length: N_PREFIX - prefix.length }, () => PAD);
  return describeSum([...prefix, ...pads, symbolOf(format.operator), ...operands, '='], format);
}

/** A row of tokens taken apart. */
export function readTokens(tokens: readonly number[], format: SumFormat): Sum {
  const vocabulary = vocabularyOf(format);
  return describeSum(tokens.map((token) => vocabulary[token] ?? PAD), format);
}

function describeSum(symbols: string[], format: SumFormat): Sum {
  const vocabulary = vocabularyOf(format);
  const variables = variablesOf(format.nVariables);
  const assignments = symbols.slice(0, N_PREFIX).flatMap((symbol, position) =>
    variables.includes(symbol) ? [{ variable: symbol, value: Number(symbols[position + 1]), position }] : [],
  );
  const [first, second] = OPERAND_POSITIONS.map((position): Operand => {
    const symbol = symbols[position] ?? '';
    const assigned = assignments.find(({ variable }) => variable === symbol);
    return assigned
      ? { variable: symbol, value: assigned.value, position, valuePosition: assigned.position + 1 }
      : { variable: null, value: Number(symbol), position, valuePosition: position };
  }) as [Operand, Operand];
  return {
    text: renderSum(symbols, format),
    tokens: symbols.map((symbol) => vocabulary.indexOf(symbol)),
    symbols,
    assignments,
    operands: [first, second],
    answer: combineWith(format.operator, format.modulus)(first.value, second.value),
  };
}

function renderSum(symbols: readonly string[], { operator }: SumFormat): string {
  const parts: string[] = [];
  for (const symbol of symbols.slice(0, N_PREFIX)) {
    if (parts.at(-1)?.endsWith('=')) parts.push(parts.pop() + symbol);
    else parts.push(symbol === PAD ? PAD_TEXT : `${symbol}=`);
  }
  while (parts.at(-1) === PAD_TEXT) parts.pop();
  return [...parts, '|', `${symbols[OPERAND_POSITIONS[0]]}${symbolOf(operator)}${symbols[OPERAND_POSITIONS[1]]}`].join(' ');
}

function parsePrefix(text: string, format: SumFormat): string[] {
  const symbols: string[] = [];
  for (const match of text.matchAll(new RegExp(`[^${BLANKS},]+`, 'gu'))) {
    const [word, column] = [match[0], lengthOf(text.slice(0, match.index)) + 1];
    if (word === PAD_TEXT) symbols.push(PAD);
    else symbols.push(...parseAssignment(word, column, symbols, format));
    if (symbols.length > N_PREFIX) {
      throw new SumError(`column ${column}: '${word}' does not fit; assignments take two and '_' one of ${N_PREFIX} positions.`, column);
    }
  }
  return symbols;
}

function parseAssignment(word: string, column: number, before: readonly string[], format: SumFormat): [string, string] {
  const equals = word.indexOf('=');
  if (equals < 0) throw new SumError(`column ${column}: '${word}' is not an assignment; write for example 'b=17'.`, column);
  const variable = word.slice(0, equals);
  if (!variablesOf(format.nVariables).includes(variable)) {
    throw new SumError(`column ${column}: '${variable}' is not a variable; use ${rangeOf(format)}.`, column);
  }
  if (before.includes(variable)) throw new SumError(`column ${column}: '${variable}' is assigned twice.`, column);
  return [variable, parseNumber(word.slice(equals + 1), column + variable.length + 1, format)];
}

function parseOperands(text: string, column: number, prefix: readonly string[], format: SumFormat): [string, string] {
  const symbol = symbolOf(format.operator);
  const sign = `\\u{${symbol.codePointAt(0)?.toString(16)}}`;
  const blank = `[${BLANKS}]*`;
  const match = new RegExp(`^(${blank})([^${BLANKS}${sign}]+)(${blank}${sign}${blank})([^${BLANKS}]+)${blank}$`, 'u').exec(text);
  if (!match) {
    const told = text.replaceAll(new RegExp(`^${blank}|${blank}$`, 'gu'), '');
    throw new SumError(`column ${column}: '${told}' is not a sum of two operands; write for example 'b${symbol}${Math.min(19, format.modulus - 1)}'.`, column);
  }
  const [, before = '', first = '', between = '', second = ''] = match;
  const start = column + lengthOf(before);
  return [
    parseOperand(first, start, prefix, format),
    parseOperand(second, start + lengthOf(first) + lengthOf(between), prefix, format),
  ];
}

function parseOperand(word: string, column: number, prefix: readonly string[], format: SumFormat): string {
  if (!variablesOf(format.nVariables).includes(word)) return parseNumber(word, column, format);
  if (!prefix.includes(word)) throw new SumError(`column ${column}: '${word}' is used but never assigned.`, column);
  return word;
}

function parseNumber(word: string, column: number, format: SumFormat): string {
  if (/^[0-9]+$/.test(word) && Number(word) < format.modulus) return String(Number(word));
  const wanted = `a number from 0 to ${format.modulus - 1}`;
  throw new SumError(`column ${column}: '${word}' is not ${wanted}; variables are ${rangeOf(format)}.`, column);
}

function rangeOf({ nVariables }: SumFormat): string {
  const variables = variablesOf(nVariables);
  return `${variables[0]} to ${variables.at(-1)}`;
}

/** Characters as Python counts them. */
function lengthOf(text: string): number {
  return [...text].length;
}

/** What Python counts as blank, which is not quite what JavaScript does. */
const BLANKS = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

/** The format of a run's sums from the settings of its task. */
export function formatOfTask(task: Readonly<Record<string, unknown>>): SumFormat {
  const { modulus, n_variables: nVariables, operator = '+' } = task as { modulus: number; n_variables: number; operator?: string };
  return { modulus, nVariables, operator };
}
