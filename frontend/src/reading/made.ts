/** A small body of predictions made by hand, for tests: four programs, three steps. */
import type { Body } from '../api/body';

const over = (dims: string[], values: unknown[]) => ({ dims, values: values as number[], units: '' });

/** Programs: depth 1 (answer 4, line 1), depth 2 (answer 7, line 2), depth 1 (answer 3, line 2), depth 2 (answer 5, line 1). */
export function madePredictions(predicted: number[], run = 'made'): Body {
  const n = predicted.length;
  return {
    title: 'Predictions at every checkpoint', attrs: {}, command: '', python: '',
    provenance: { run, step: null, n: 4, seed: 0, interval: '', note: '' },
    sizes: { step: n / 4, program: 4 },
    coords: {
      step: over(['step'], [0, 100, 200].slice(0, n / 4)),
      text: over(['program'], ['a=4\nb=7\n#a:', 'a=4\nb=7\nc=b\n#c:', 'a=1\nb=3\n#b:', 'a=5\nb=a\n#b:']),
      answer: over(['program'], [4, 7, 3, 5]),
      attribute_depth: over(['program'], [1, 2, 1, 2]),
      attribute_root_line: over(['program'], [1, 2, 2, 1]),
      attribute_lines: over(['program'], [2, 3, 2, 2]),
      rule_line_1: over(['program'], [4, 4, 1, 5]),
    },
    variables: {
      predicted: over(['step', 'program'], predicted),
      source: over(['step', 'program'], predicted.map((digit) => (digit < 0 ? 0 : 1))),
      probability: over(['step', 'program'], predicted.map((_, index) => index / n)),
      line_1_probability: over(['step', 'program'], predicted.map(() => 0.25)),
    },
  }; // prettier-ignore
}
