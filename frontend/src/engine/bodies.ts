/** Bodies as the server makes them, with the same titles, commands and lines of Python. */
import type { Body, Labelled, Value } from '../api/body';
import { showSymbol, tokensOf, VOCABULARY, type Program } from '../program/program';

export interface Made {
  title: string;
  run: string;
  step: number | null;
  n?: number;
  seed?: number | null;
  interval?: string;
  note?: string;
  sizes: Record<string, number>;
  coords: Record<string, Labelled>;
  variables: Record<string, Labelled>;
  attrs: Record<string, string | number>;
  command: string;
  python: string;
}

export function makeBody({ run, step, n = 1, seed = null, interval = '', note = '', ...made }: Made): Body {
  return { ...made, provenance: { run, step, n, seed, interval, note } };
}

/** An array and the names of its axes: `labelled(['step', 'output'], fractions, 'fraction')`. */
export function labelled(dims: string[], values: ArrayLike<Value>, units = ''): Labelled {
  return { dims, values: Array.from(values), units };
}

/** 0, 1, … along an axis. */
export function counted(dim: string, length: number): Labelled {
  return labelled([dim], Array.from({ length }, (_, index) => index));
}

export function showOutputs(nOutputs: number): Labelled {
  return labelled(['output'], VOCABULARY.slice(0, nOutputs).map(showSymbol));
}

export function showTokens(program: Program, dim: string): Labelled {
  return labelled([dim], tokensOf(program).map((token) => token.shown));
}

/** 3,700 */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}
