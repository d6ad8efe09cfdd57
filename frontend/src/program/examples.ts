/** Example programs as `runs/{run}/programs.json` and the live question `sample` give them. */
import type { Body, Value } from '../api/body';

export interface Example {
  text: string;
  counterfactual: string;
  depth: number;
  rootLine: number;
  distractors: number; // chains beside the queried one
  nLines: number;
  answer: number;
  counterfactualAnswer: number;
}

/** `examplesOf(body)[0].text` is the usual program of a run. */
export function examplesOf(body: Body): Example[] {
  const column = (name: string): Value[] => ((body.coords[name] ?? body.variables[name])?.values ?? []) as Value[];
  const numbers = (name: string): number[] => column(name).map(Number);
  const [depth, rootLine, distractors, nLines] = ['depth', 'root_line', 'distractors', 'n_lines'].map(numbers);
  const [answer, counterfactualAnswer] = ['answer', 'counterfactual_answer'].map(numbers);
  const counterfactual = column('counterfactual');
  return column('text').map((text, index) => ({
    text: String(text),
    counterfactual: String(counterfactual[index] ?? ''),
    depth: depth?.[index] ?? 0,
    rootLine: rootLine?.[index] ?? 0,
    distractors: distractors?.[index] ?? 0,
    nLines: nLines?.[index] ?? 0,
    answer: answer?.[index] ?? 0,
    counterfactualAnswer: counterfactualAnswer?.[index] ?? 0,
  }));
}
