/** Questions as commands and as Python, from the table that `python -m bindscope.questions.table` writes; as `bindscope.questions.render`. */
import table from './questions.json';

export type Name = keyof typeof table;
export type Given = string | number | boolean | null | undefined | readonly (string | number)[];

interface Field {
  readonly name: string;
  readonly flag: string; // its option; empty where it is typed without one
  readonly keyword: string;
  readonly positional: boolean; // in Python
  readonly joined: boolean; // several values as one word, with commas
  readonly shown: boolean; // also where it is the default
  readonly default: unknown;
}

export const oneLine = (text: string): string => text.replaceAll('\n', ';'); // a program as it is typed on a command line

const STUDY = 'symbols'; // the study that is opened without a run
const SAFE = /^[\w@%+=:,./-]+$/;

/** `toCommand('Predict', { run: 'binding-laptop', program: 'a=5;#a:', steps: 'all' })` */
export function toCommand(name: Name, values: Readonly<Record<string, Given>>): string {
  const given = givenOf(name, values);
  const words = given.filter(([field]) => !field.flag).flatMap(([, value]) => [value].flat());
  const options = given.filter(([field]) => field.flag).flatMap(([{ flag, joined }, value]) => optionsOf(flag, value, joined));
  return join(table[name].command, words, options);
}

/** A command that no question stands behind, by the same rules: `writeCommand('behaviour', ['binding-laptop'], { step: 600 })` */
export function writeCommand(command: string, words: readonly string[] = [], options: Readonly<Record<string, Given>> = {}): string {
  return join(command, words, Object.entries(options).flatMap(([name, value]) => (value == null ? [] : optionsOf(`--${name}`, value))));
}

/** The lines of Python that open the run or the study and ask it. */
export function toPython(name: Name, values: Readonly<Record<string, Given>>): string {
  const { opener, method } = table[name];
  const given = givenOf(name, values).filter(([field]) => field.name !== 'run');
  const bare = given.filter(([field]) => field.positional).flatMap(([, value]) => [value].flat().map(literalOf));
  const keywords = given.filter(([field]) => !field.positional).map(([field, value]) => `${field.keyword}=${literalOf(value)}`);
  const opened = `${opener} = ${openedAs(opener, values.run ?? STUDY)}`;
  return ['import bindscope', '', opened, `${opener}.${method}(${[...bare, ...keywords].join(', ')})`].join('\n');
}

/** A run or a study as Python opens it. */
export function openedAs(opener: string, name: NonNullable<Given>): string {
  return `bindscope.open_${opener}(${literalOf(name)})`;
}

/** Both, as a body has them. */
export function askAgain(name: Name, values: Readonly<Record<string, Given>>): { command: string; python: string } {
  return { command: toCommand(name, values), python: toPython(name, values) };
}

/** Steps as a question has them: one, some, or all there are. */
export function stepsAsked(steps: readonly number[], all: readonly number[]): Given {
  if (steps.length === 1) return steps[0];
  return String(steps) === String(all) ? 'all' : steps;
}

function givenOf(name: Name, values: Readonly<Record<string, Given>>): [Field, NonNullable<Given>][] {
  return (table[name].fields as Field[]).flatMap((field): [Field, NonNullable<Given>][] => {
    const value = (field.name in values ? values[field.name] : field.default) as Given;
    const usual = JSON.stringify(value) === JSON.stringify(field.default);
    return value == null || (usual && !field.shown) ? [] : [[field, value]];
  });
}

function join(command: string, words: readonly (string | number | boolean)[], options: readonly string[]): string {
  return ['bindscope', command, ...words.map((word) => quote(String(word))), ...options].join(' ');
}

function optionsOf(flag: string, value: NonNullable<Given>, joined = false): string[] {
  if (typeof value === 'boolean') return [value ? flag : `--no-${flag.slice(2)}`];
  const texts = [value].flat().map(String);
  return (joined ? [texts.join(',')] : texts).map((text) => `${flag}${text.startsWith('-') || text.includes(',-') ? '=' : ' '}${quote(text)}`);
}

function literalOf(value: NonNullable<Given>): string {
  if (Array.isArray(value)) return `[${value.map(literalOf).join(', ')}]`;
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

/** Text as a shell reads it, as Python's `shlex.quote`. */
function quote(text: string): string {
  return SAFE.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}
