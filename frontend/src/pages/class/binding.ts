/** Exercises on a run of binding programs. */
import { labelsOf, number, type Body } from '../../api/body';
import type { RunSummary } from '../../api/client';
import { oneLine } from '../../api/render';
import { formatPercent } from '../../charts/format';
import { columnOf, stepsOf } from '../../reading/curves';
import { percent, topOf } from '../../reading/digits';
import { readPredictions, tellingProgram } from '../../reading/predictions';
import { atStep } from '../../reading/findings';
import { stepWithin } from '../../reading/phases';
import type { Answer, Exercise } from './exercise';

const [FOLLOWS, STAYS] = ['yes, it says the new digit', 'no'];
const [FIRST, LATER, EQUAL] = ['answers on line 1', 'answers on later lines', 'neither, within five points'];
const CLEAR = 0.05;

/** Four questions about one program, found among those that the run was asked: half-way the shortcut is said, in the end the chain is followed. */
export function bindingExercises(run: RunSummary, stored: Body): Exercise[] {
  const early = stepWithin(run, 'heuristic');
  const last = run.steps.at(-1);
  const program = early === null ? null : findProgram(stored, early);
  if (early === null || last === undefined || program === null) return [];
  const other = changeLine1(program);
  const given = shown(program);
  const digits = [...new Set(program.match(/(?<==)\d/g) ?? [])].sort();
  const options = [...digits, 'another digit'];
  const see = { page: 'program', run: run.name, program };
  const half = `At ${atStep(early)} of ${run.name}, which is`;
  return [
    {
      name: 'halfway', topic: 'Binding', given, options, see: { ...see, step: early },
      question: `${half} half-way, what does the model say to this program?`,
      hint: 'Accuracy rests here for a long time. Which rule, simpler than following the chain, is right about as often?',
      source: { operation: 'predict', question: { run: run.name, steps: [early], program } },
      read: (body) => readSaid(body, early, digits),
    },
    {
      name: 'end', topic: 'Binding', given, options, see: { ...see, step: last },
      question: `And at the end, ${atStep(last)}?`,
      hint: 'Start at the name that is asked for and go from line to line until you come to a digit.',
      source: { operation: 'predict', question: { run: run.name, steps: [last], program } },
      read: (body) => readSaid(body, last, digits),
    },
    {
      name: 'line1', topic: 'Binding', given: `${given}\n${shown(other)}`, options: [FOLLOWS, STAYS], see: { ...see, program: other, step: early },
      question: `${half} half-way again: only the digit of line 1, which the question is not about, is changed. Does the answer change with it?`,
      hint: 'A cause is found by changing it alone. What would a model that follows the chain do, and what one that reads the first line?',
      source: { operation: 'predict', question: { run: run.name, steps: [early], program: other } },
      read: (body) => readFollowing(body, early, /=(\d)/.exec(other)?.[1] ?? ''),
    },
    {
      name: 'lines', topic: 'Binding', given: '', options: [FIRST, LATER, EQUAL], see: { page: 'trajectory', run: run.name, step: early },
      question: `${half} half-way, over all programs: which are right more often, answers that stand on line 1, or answers that stand on later lines?`,
      hint: 'Think of what was said to the program above, and of programs for which it would have been right.',
      source: { path: `runs/${run.name}/trajectory.json` },
      read: (body) => readLines(body, early),
    },
  ]; // prettier-ignore
}

/** One that tells the shortcut from the chain, best with a digit on line 1 that stands on no other line: changing that one is to show something. */
function findProgram(stored: Body, early: number): string | null {
  const read = readPredictions(stored);
  const once = read.programs.filter(({ text, line1 }) => text.split(`=${line1}`).length === 2);
  return (tellingProgram({ ...read, programs: once }, early) ?? tellingProgram(read, early))?.text ?? null;
}

/** The same program with another digit on line 1: one that stands on no line. */
export function changeLine1(program: string): string {
  const taken = new Set(program.match(/\d/g) ?? []);
  const free = [...'7306918425'].find((digit) => !taken.has(digit)) ?? String((Number(/=(\d)/.exec(program)?.[1]) + 1) % 10);
  return program.replace(/=\d/, `=${free}`);
}

function readSaid(body: Body, step: number, digits: readonly string[]): Answer {
  const { output, fraction } = topOf(body, { step });
  return {
    right: [digits.includes(output) ? output : 'another digit'],
    told: `The model says ${output}, with ${percent(fraction)}. The chain leads to ${body.attrs?.answer}; line 1 says ${body.attrs?.line_1}.`,
  };
}

function readFollowing(body: Body, step: number, changed: string): Answer {
  const { output, fraction } = topOf(body, { step });
  return { right: [output === changed ? FOLLOWS! : STAYS!], told: `With ${changed} on line 1 the model says ${output}, with ${percent(fraction)}; the chain still leads to ${body.attrs?.answer}.` };
}

/** Accuracy of answers on line 1 against those on all later lines, weighted by how many there are. */
export function readLines(body: Body, step: number): Answer {
  const at = stepsOf(body)[columnOf(stepsOf(body), step)] ?? step;
  const rows = labelsOf(body, 'root_line').flatMap((line) => {
    const accuracy = number(body, 'accuracy_by_root_line', { step: at, root_line: line });
    return accuracy === null ? [] : [{ line: Number(line), accuracy, n: number(body, 'n_by_root_line', { root_line: line }) ?? 1 }];
  });
  const mean = (chosen: typeof rows): number => chosen.reduce((sum, row) => sum + row.n * row.accuracy, 0) / chosen.reduce((sum, row) => sum + row.n, 0);
  const [first, later] = [mean(rows.filter(({ line }) => line === 1)), mean(rows.filter(({ line }) => line > 1))];
  const right = Math.abs(first - later) < CLEAR ? EQUAL : first > later ? FIRST : LATER;
  return { right: [right!], told: `At ${atStep(at)} answers on line 1 are right in ${formatPercent(first)}, those on later lines in ${formatPercent(later)}.` };
}

const shown = (program: string): string => oneLine(program).replaceAll(';', ' · ');
