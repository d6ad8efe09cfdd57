/** Attributes of programs in words; the names themselves are those of the command line and of the tables. */
import { wordsOf } from '../../reading/curves';

const WORDS: Record<string, string> = {
  root_line: "the answer's line",
  query_line: 'the line that is asked for',
  distance: 'lines between these two',
  n_distractors: 'constants off the chain',
  n_same_root: 'lines with the same root',
  n_distinct: 'different digits',
  n_equal: 'constants equal to the answer',
  n_overwritten: 'overwritten lines',
  line_1_right: 'line 1 has the answer',
  line_2_constant: 'line 2 is a constant',
  answer: 'the digit of the answer',
};
const YES_OR_NO = ['line_1_right', 'line_2_constant'];

/** 'n_equal' → 'constants equal to the answer'. */
export function attributeWords(name: unknown): string {
  return WORDS[String(name)] ?? wordsOf(name);
}

/** What a value of an attribute is called: 1 is yes where the attribute is a question. */
export function valueWords(attribute: unknown, value: unknown): string {
  return YES_OR_NO.includes(String(attribute)) ? (Number(value) ? 'yes' : 'no') : String(value);
}
