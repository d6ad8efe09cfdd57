/** An exercise: a question that is answered before the page computes the answer, and how the answer is read off what it computes. */
import type { Body } from '../../api/body';
import type { Asked } from '../../state/load.svelte';
import type { View } from '../../state/hash';

export interface Exercise {
  name: string; // in the address
  topic: 'Binding' | 'Addition' | 'Symbols';
  question: string;
  given: string; // what the question is about, as typed; may be empty
  hint: string;
  options: readonly string[]; // what can be predicted; none: a number is typed
  source: { path: string } | Asked; // what is read or asked for the answer
  read: (body: Body) => Answer;
  see: Partial<View>; // where a reader sees it
}

export interface Answer {
  right: readonly string[]; // every prediction that what was computed bears out
  told: string; // what was computed, in a sentence
}

/** Whether a prediction came true. Numbers are compared as numbers: '07' is 7. */
export function cameTrue(prediction: string, { right }: Answer): boolean {
  const plain = (text: string): string => (/^\d+$/.test(text.trim()) ? String(Number(text)) : text.trim());
  return right.some((one) => plain(one) === plain(prediction));
}

/** '3 of 10 checked, 2 as predicted.' */
export function tellScore(total: number, outcomes: readonly (boolean | null)[]): string {
  const known = outcomes.filter((outcome) => outcome !== null);
  return `${known.length} of ${total} checked, ${known.filter(Boolean).length} as predicted.`;
}
