/** What a swap did, as rows of digits and as a sentence. */
import { pick, type Body } from '../../api/body';
import { withQuery } from '../../program/edits';
import { DIGITS, readProgram, type Program } from '../../program/program';
import { digitBars, percent, topOf } from '../../reading/digits';

const NO_DIGIT = 'none';
const ROWS: Record<string, string> = { base: 'before', counterfactual: 'counterfactual', swapped: 'after' };

/** Probability of each digit and of all that is no digit, a row for each condition. */
export function digitRows(body: Body): { rows: string[]; columns: string[]; values: (number | null)[] } {
  const values = Object.keys(ROWS).flatMap((condition) => digitBars(body, { condition }, []).map((bar) => bar.value));
  return { rows: Object.values(ROWS), columns: [...DIGITS, NO_DIGIT], values };
}

/** Where the two answers stand among the digits. */
export function answerColumns(body: Body): Set<number> {
  return new Set([body.attrs?.base_answer, body.attrs?.source_answer].map((answer) => DIGITS.indexOf(String(answer))));
}

/** The likeliest output after the swap, and what it means. */
export function tellSwap(body: Body): string {
  const { output, fraction } = topOf(body, { condition: 'swapped' });
  const after = Number(body.attrs?.draws ?? 1) > 1 ? `On average over ${body.attrs?.draws} draws` : 'After the swap';
  const { base_answer: base, source_answer: source } = body.attrs ?? {};
  const meaning =
    output === String(source)
      ? 'the counterfactual’s answer: the swap worked'
      : output === String(base)
        ? 'still the program’s own answer'
        : `neither ${base} nor the counterfactual’s ${source}`;
  return `${after} the model says ${output} (${percent(fraction)}), ${meaning}.`;
}

/** What several draws of a control give: how often the counterfactual's answer, and its probability with its interval over draws. */
export function tellDraws(body: Body): string {
  const { n_success: n, draws, source_answer: source } = body.attrs ?? {};
  if (n === undefined) return '';
  const at = (name: string, condition?: string): string => percent(Number(pick(body, name, condition ? { condition, output: String(source) } : { output: String(source) })[0]));
  const [mean, low, high] = [at('probability', 'swapped'), at('probability_low'), at('probability_high')];
  return `${n} of ${draws} draws give ${source}, the counterfactual’s answer; on average its probability is ${mean} (${low} to ${high}, 95 % over draws).`;
}

/** The pair that is swapped. Names are told apart by a pair that asks for two: unless the counterfactual already asks for another variable, the program itself does, one of another value whose chain begins on line 3 or later where there is one. */
export function pairFor(quality: string, program: string, counterfactual: string): { program: string; counterfactual: string } {
  if (quality !== 'names') return { program, counterfactual };
  try {
    const base = readProgram(program);
    if (isAskedOther(base, counterfactual)) return { program, counterfactual };
    const lines = base.values.map((_, index) => index + 1).filter((line) => base.values[line - 1] !== base.answer);
    const late = lines.filter((line) => rootOf(base, line) >= 3);
    const line = (late.length ? late : lines).at(-1);
    const variable = line === undefined ? undefined : base.assignments[line - 1]?.variable;
    return variable === undefined ? { program, counterfactual } : { program, counterfactual: withQuery(base, variable).text };
  } catch {
    return { program, counterfactual }; // the server says what is wrong with it
  }
}

function isAskedOther(base: Program, counterfactual: string): boolean {
  try {
    return readProgram(counterfactual).query !== base.query;
  } catch {
    return true;
  }
}

function rootOf(program: Program, line: number): number {
  const reference = program.references[line - 1] ?? null;
  return reference === null ? line : rootOf(program, reference);
}
