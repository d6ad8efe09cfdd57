/** The score that = gives a value in layer 2: {E₌, P₁₅, h₌} × {E, P, h of the value}, over training and at one checkpoint. */
import { labelsOf, number, numbers, type Body } from '../../api/body';
import type { Series } from '../../charts/types';
import { stepsOf } from '../../reading/curves';

export const QUERY_NAMES: Record<string, string> = { token: 'E₌', position: 'P₁₅', 'layer 1': 'h₌' };
export const KEY_NAMES: Record<string, string> = { token: 'E', position: 'P', 'layer 1': 'h' };
const BROUGHT = 'layer 1';

export function variablesOf(body: Body): string[] {
  return labelsOf(body, 'variable').map(String);
}

/** The variable that is asked for, where the run has it; else the one whose score rises most across the last spike. */
export function knownVariable(body: Body, wanted: string): string {
  return variablesOf(body).includes(wanted) ? wanted : String(body.attrs?.variable ?? variablesOf(body)[0]);
}

/** The whole score, dashed, and its nine terms; then the match of what layer 1 brought to both, before the others. */
export function termCurves(body: Body, variable: string, operand: string): Series[] {
  const x = stepsOf(body);
  const terms = partsOf(body, 'query_part').flatMap((query) =>
    partsOf(body, 'key_part').map((key) => ({
      name: `${QUERY_NAMES[query] ?? query}·${KEY_NAMES[key] ?? key}`,
      x,
      y: numbers(body, 'term', { variable, operand, query_part: query, key_part: key }),
      colour: colourOf(query === BROUGHT, key === BROUGHT),
    })),
  );
  const score = x.map((_, at) => terms.reduce((sum, { y }) => sum + (y[at] ?? 0), 0));
  return [{ name: 'whole score', x, y: score, colour: 'var(--ink)', dashed: true }, ...terms.reverse()];
}

function colourOf(queryBrought: boolean, keyBrought: boolean): string {
  if (queryBrought && keyBrought) return '#d55e00';
  if (queryBrought) return '#0072b2';
  return keyBrought ? '#cc79a7' : '#8a919e';
}

/** The nine terms at one checkpoint: names and values row by row. */
export function termCells(body: Body, variable: string, operand: string, step: number): { rows: string[]; columns: string[]; values: (number | null)[] } {
  return {
    rows: partsOf(body, 'query_part').map((part) => QUERY_NAMES[part] ?? part),
    columns: partsOf(body, 'key_part').map((part) => KEY_NAMES[part] ?? part),
    values: numbers(body, 'term', { step, variable, operand }),
  };
}

/** `At step 11,200 the value of b scores 2.5 as first operand, of which 2.0 is the match of what layer 1 brought to both; …` */
export function tellScores(body: Body, variable: string, step: number): string {
  const told = labelsOf(body, 'operand').map((operand) => tellScore(body, variable, String(operand), step));
  return `At step ${step.toLocaleString('en')} the value of ${variable} scores ${told.join('; ')}.`;
}

function tellScore(body: Body, variable: string, operand: string, step: number): string {
  const score = termCells(body, variable, operand, step).values.reduce<number>((sum, term) => sum + (term ?? 0), 0);
  const match = number(body, 'term', { step, variable, operand, query_part: BROUGHT, key_part: BROUGHT });
  return `${signed(score)} as ${operand} operand, of which ${signed(match ?? 0)} is the match of what layer 1 brought to both`;
}

/** The largest size that a term of this variable ever has, in whole numbers: the colours reach as far at every checkpoint. */
export function termReach(body: Body, variable: string): number {
  return Math.max(1, ...numbers(body, 'term', { variable }).map((term) => Math.ceil(Math.abs(term ?? 0))));
}

/** One decimal, with a minus sign, and no minus before 0.0. */
export function signed(value: number): string {
  return value.toFixed(1).replace(/^-0\.0$/, '0.0').replace('-', '−');
}

function partsOf(body: Body, dim: 'query_part' | 'key_part'): string[] {
  return labelsOf(body, dim).map(String);
}
