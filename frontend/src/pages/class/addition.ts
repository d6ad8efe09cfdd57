/** Exercises on a run of modular addition. */
import type { Body } from '../../api/body';
import type { RunDetail, RunSummary } from '../../api/client';
import { percent, topOf } from '../../reading/digits';
import { atStep, listed, staysAbove } from '../../reading/findings';
import { formatOfTask, parseSum } from '../../sums/sum';
import { describeSplit, splitCurves, SPLITS } from '../../reading/splits';
import { stepWithin } from '../../reading/phases';
import type { Answer, Exercise } from './exercise';

const [RIGHT, WRONG] = ['right', 'wrong'];
const LEARNT = 0.9;

/** Three questions about one example sum with two variables, and about the kinds of sums. */
export function additionExercises(run: RunSummary, examples: Body, detail: RunDetail): Exercise[] {
  const early = stepWithin(run, 'addition', 1);
  const last = run.steps.at(-1);
  const given = (examples.coords.text?.values ?? []).map(String).findLast((text) => /\|\s*[a-z]\W[a-z]$/.test(text));
  if (early === null || last === undefined || !given) return [];
  const format = formatOfTask(detail.config.task as Record<string, unknown>);
  const sum = parseSum(given, format);
  const see = { page: 'arithmetic', run: run.name, program: given, options: { 'arithmetic.tab': 'sum' } };
  const learning = { page: 'arithmetic', run: run.name };
  const splits = SPLITS.map((name) => describeSplit(name).title);
  return [
    {
      name: 'sum', topic: 'Addition', given, options: [], see: { ...see, step: last },
      question: `What does the model say to this sum at the end, ${atStep(last)}? It adds modulo ${format.modulus}.`,
      hint: `Look both variables up, add, and take away ${format.modulus} if the sum is ${format.modulus} or more. A model may err: would you expect it to, at the end?`,
      source: { operation: 'sum', question: { run: run.name, steps: [last], sequence: sum.text } },
      read: (body) => readSum(body, last),
    },
    {
      name: 'early', topic: 'Addition', given, options: [RIGHT!, WRONG!], see: { ...see, step: early },
      question: `Is its answer to the same sum right at ${atStep(early)}, when sums of two numbers are already added?`,
      hint: 'Adding numbers is one thing, finding which number a variable stands for another. Which of the two is learnt later?',
      source: { operation: 'sum', question: { run: run.name, steps: [early], sequence: sum.text } },
      read: (body) => ({ ...readSum(body, early), right: [topOf(body, { step: early }).output === String(body.attrs?.answer) ? RIGHT! : WRONG!] }),
    },
    {
      name: 'last', topic: 'Addition', given: '', options: splits, see: learning,
      question: `Which kind of sums is the last to be answered at ${100 * LEARNT} % for good, or never is?`,
      hint: 'In training some variables stand on one side of the sum only. What is hardest: a pair of numbers never added, or a variable where it never stood?',
      source: { path: `runs/${run.name}/splits.json` },
      read: readLast,
    },
  ]; // prettier-ignore
}

function readSum(body: Body, step: number): Answer {
  const { output, fraction } = topOf(body, { step });
  return { right: [output], told: `At ${atStep(step)} the model says ${output}, with ${percent(fraction)}; the sum is ${body.attrs?.answer}.` };
}

/** The kinds of sums that stay above 90 % latest; all that never do, where there are such. */
export function readLast(body: Body): Answer {
  const reached = splitCurves(body).map(({ name, x, y }) => ({ name, step: staysAbove(x, y, LEARNT) ?? Infinity }));
  const latest = Math.max(...reached.map(({ step }) => step));
  const right = reached.filter(({ step }) => step === latest).map(({ name }) => name);
  return { right, told: Number.isFinite(latest) ? `${listed(right)}: from ${atStep(latest)}.` : `Never for good: ${listed(right)}.` };
}
