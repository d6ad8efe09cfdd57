/** Templates as `bindscope.tasks.templates` reads them: sequences of wildcards and regular tokens, and when two can describe the same sequence.

A capital letter A–Z or a Greek small letter α–ω is a wildcard, any other character is a regular token, and 'quotes' make a regular token of
several characters. */
const WILDCARDS = new Set('ABCDEFGHIJKLMNOPQRSTUVWXYZαβγδεζηθικλμνξοπρστυφχψω');
export const SPACE = /[\s\u001c-\u001f\u0085]/u; // what Python calls a space, but for the next one
const NO_SPACE = '\ufeff';

export interface Token {
  readonly kind: 'wildcard' | 'regular';
  readonly name: string;
}
export type Template = readonly Token[];

/** A template that cannot be read, with the place of the mistake, counted from 1. */
export class TemplateError extends Error {
  constructor(
    message: string,
    readonly column: number,
  ) {
    super(message);
  }
}

export function isSpace(character: string): boolean {
  return character !== NO_SPACE && SPACE.test(character);
}

/** `parseTemplate("A='+1'")` is wildcard A, =, +1. */
export function parseTemplate(text: string): Template {
  const characters = [...text];
  const tokens: Token[] = [];
  let column = 0;
  while (column < characters.length) {
    const character = characters[column]!;
    if (isSpace(character)) column += 1;
    else if (character !== "'") {
      tokens.push({ kind: WILDCARDS.has(character) ? 'wildcard' : 'regular', name: character });
      column += 1;
    } else {
      const end = characters.findIndex((other, place) => place > column && (other === "'" || isSpace(other)));
      if (end < 0 || characters[end] !== "'" || end === column + 1) {
        throw new TemplateError(`column ${column + 1}: a quoted token needs a closing ' and no spaces inside.`, column + 1);
      }
      tokens.push({ kind: 'regular', name: characters.slice(column + 1, end).join('') });
      column = end + 1;
    }
  }
  if (!tokens.length) throw new TemplateError('A template needs at least one token.', 1);
  return tokens;
}

/** Templates with spaces between them, as they are typed on a command line. */
export function splitTemplates(text: string): string[] {
  const words: string[] = [''];
  for (const character of text) {
    if (isSpace(character)) words.push('');
    else words[words.length - 1] += character;
  }
  return words.filter(Boolean);
}

export function showTemplate(template: Template): string {
  return template.map(showToken).join('');
}

function showToken({ kind, name }: Token): string {
  return kind === 'wildcard' || ([...name].length === 1 && !WILDCARDS.has(name)) ? name : `'${name}'`;
}

/** Names of its wildcards, or of its regular tokens, in order of first appearance. */
export function namesOf(template: Template, kind: Token['kind']): string[] {
  return [...new Set(template.filter((token) => token.kind === kind).map((token) => token.name))];
}

/** Equal exactly for equivalent templates: regular tokens as they are, wildcards by the order of their appearance. */
export function canonical(template: Template): string {
  const wildcards = namesOf(template, 'wildcard');
  return JSON.stringify(template.map(({ kind, name }) => (kind === 'wildcard' ? wildcards.indexOf(name) : name)));
}

/** The injective substitution that makes this sequence, or null. Wildcards may stand for regular tokens too. */
export function matchString(template: Template, string: readonly string[]): Map<string, string> | null {
  if (string.length !== template.length) return null;
  const symbols = new Map<string, string>();
  for (const [place, { kind, name }] of template.entries()) {
    const symbol = string[place]!;
    if (kind === 'wildcard' && !symbols.has(name)) symbols.set(name, symbol);
    if ((kind === 'wildcard' ? symbols.get(name) : name) !== symbol) return null;
  }
  return new Set(symbols.values()).size === symbols.size ? symbols : null;
}

/** A sequence that both templates match, or null when they are disjoint. Positions that must hold the same symbol are merged into classes. */
export function findCommonString(first: Template, second: Template): string[] | null {
  if (first.length !== second.length) return null;
  const classOf = new Map<string, string[]>();
  const take = (node: string): string[] => classOf.get(node) ?? (classOf.set(node, [node]), classOf.get(node)!);
  first.forEach((token, place) => {
    const left = take(nodeOf(token, '1'));
    const right = take(nodeOf(second[place]!, '2'));
    if (left === right) return;
    left.push(...right);
    for (const node of right) classOf.set(node, left);
  });
  const classes = [...new Set(classOf.values())];
  if (classes.some((members) => new Set(members.map((node) => node[0])).size < members.length)) return null; // two of one template, or two regular tokens
  const taken = new Set([...namesOf(first, 'regular'), ...namesOf(second, 'regular')]);
  let index = 0;
  const fresh = (): string => {
    while (taken.has(`s${index}`)) index += 1;
    return `s${index++}`;
  };
  const symbolOf = new Map<string, string>();
  for (const members of classes) {
    const symbol = members.find((node) => node.startsWith('r'))?.slice(1) ?? fresh();
    for (const node of members) symbolOf.set(node, symbol);
  }
  return first.map((token) => symbolOf.get(nodeOf(token, '1'))!);
}

function nodeOf({ kind, name }: Token, owner: '1' | '2'): string {
  return `${kind === 'wildcard' ? owner : 'r'}${name}`;
}
