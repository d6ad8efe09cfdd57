/** What a swap did, as rows of digits and as a sentence. */
import { labelsOf, numbers, type Body } from '../../api/body';

const DIGITS = [...'0123456789'];
export const ROWS: Record<string, string> = { base: 'before', counterfactual: 'counterfactual', swapped: 'after' };

/** Probability of each digit, a row for each condition. */
export function digitRows(body: Body): { rows: string[]; columns: string[]; values: (number | null)[] } {
  const outputs = labelsOf(body, 'output').map(String);
  const values = Object.keys(ROWS).flatMap((condition) => {
    const shares = numbers(body, 'probability', { condition });
    return DIGITS.map((digit) => shares[outputs.indexOf(digit)] ?? null);
  });
  return { rows: Object.values(ROWS), columns: DIGITS, values };
}

/** Where the two answers stand among the digits. */
export function answerColumns(body: Body): Set<number> {
  return new Set([body.attrs?.base_answer, body.attrs?.source_answer].map((answer) => DIGITS.indexOf(String(answer))));
}

/** The likeliest output after the swap, and what it means. */
export function tellSwap(body: Body): string {
  const shares = numbers(body, 'probability', { condition: 'swapped' }).map((share) => share ?? 0);
  const best = shares.indexOf(Math.max(...shares));
  const output = String(labelsOf(body, 'output')[best]);
  const { base_answer: base, source_answer: source } = body.attrs ?? {};
  const meaning =
    output === String(source)
      ? 'the counterfactual’s answer: the swap worked'
      : output === String(base)
        ? 'still the program’s own answer'
        : `neither ${base} nor the counterfactual’s ${source}`;
  return `After the swap the model says ${output} (${Math.round(100 * (shares[best] ?? 0))} %), ${meaning}.`;
}
