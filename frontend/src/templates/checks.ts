/** What is wrong with templates as a task, in the words of `bindscope templates check`, and sequences they make. */
import { canonical, findCommonString, matchString, namesOf, showTemplate, type Template } from './template';

export interface Overlap {
  first: string;
  second: string;
  string: string[];
}

/** One sentence for each thing that is wrong; none when they are equally long, not equivalent and disjoint. */
export function findProblems(templates: readonly Template[]): string[] {
  if (!templates.length) return ['There are no templates.'];
  const problems: string[] = [];
  if (new Set(templates.map((template) => template.length)).size > 1) {
    problems.push(`Templates need equally many tokens: ${templates.map((template) => `${showTemplate(template)} has ${template.length}`).join(', ')}.`);
  }
  for (const [first, second] of pairs(templates)) {
    if (canonical(first) === canonical(second)) problems.push(`${showTemplate(first)} and ${showTemplate(second)} are equivalent: they make the same sequences.`);
  }
  for (const [first, second] of pairs(templates)) {
    const common = canonical(first) === canonical(second) ? null : findCommonString(first, second);
    if (common) problems.push(describeOverlap(first, second, common));
  }
  return problems;
}

/** Pairs that are not equivalent and that match a common sequence. */
export function findOverlaps(templates: readonly Template[]): Overlap[] {
  return pairs(templates).flatMap(([first, second]) => {
    const string = canonical(first) === canonical(second) ? null : findCommonString(first, second);
    return string ? [{ first: showTemplate(first), second: showTemplate(second), string }] : [];
  });
}

function describeOverlap(first: Template, second: Template, string: string[]): string {
  const words = [first, second].map((template) => `${showTemplate(template)}: ${describeMatch(matchString(template, string))}`);
  return `${showTemplate(first)} and ${showTemplate(second)} are not disjoint: both match ${string.join(' ')} (${words.join('; ')}).`;
}

export function describeMatch(substitution: ReadonlyMap<string, string> | null): string {
  return [...(substitution ?? [])].map(([wildcard, symbol]) => `${wildcard} = ${symbol}`).join(', ') || 'no wildcards';
}

export interface Sample {
  string: string[];
  substitution: Map<string, string>;
}

/** Strings of a template, a different symbol for each wildcard; symbols are letters, or s0, s1, … for many. */
export function sampleStrings(template: Template, n: number, random: () => number): Sample[] {
  const regular = new Set(namesOf(template, 'regular'));
  const wildcards = namesOf(template, 'wildcard');
  const letters = [...'abcdefghijklmnopqrstuvwxyz'].filter((letter) => !regular.has(letter));
  const numbered = Array.from({ length: 2 * (wildcards.length + regular.size) }, (_, index) => `s${index}`).filter((name) => !regular.has(name));
  const names = wildcards.length <= letters.length ? letters : numbered;
  return Array.from({ length: n }, () => {
    const left = [...names];
    const substitution = new Map(wildcards.map((wildcard) => [wildcard, left.splice(Math.floor(random() * left.length), 1)[0]!]));
    return { string: template.map(({ kind, name }) => (kind === 'wildcard' ? substitution.get(name)! : name)), substitution };
  });
}

/** Random numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pairs<T>(items: readonly T[]): [T, T][] {
  return items.flatMap((first, index) => items.slice(index + 1).map((second): [T, T] => [first, second]));
}
