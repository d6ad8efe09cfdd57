/** Exercises on templates and on symbols never seen, which are about no run. */
import type { Body } from '../../api/body';
import { asOnPage } from '../../charts/format';
import { curvesOverN } from '../../reading/symbols';
import { USUAL } from '../../templates/typed';
import type { Answer, Exercise } from './exercise';

const VERDICTS = ['learnable', 'not learnable', 'not covered'];
const HALF = 0.5; // of the loss of knowing nothing
const { beta, activation } = USUAL;
const LABELS = [1, -1];

export function symbolExercises(): Exercise[] {
  const at = (options: Record<string, string>) => ({ page: 'symbols', options: { 'symbols.tab': 'templates', 'symbols.labels': '1,-1', ...options } });
  return [
    {
      name: 'blind', topic: 'Symbols', given: 'AA 1 · AB −1', options: VERDICTS, see: at({ 'symbols.templates': 'AA AB', 'symbols.gamma': '0', 'symbols.cls': 'off' }),
      question: 'Sequences of two equal symbols have label 1, of two different ones −1. A very wide transformer sees neither positions nor a token at the end that attends to both. Does theory say that it can learn to answer for symbols never seen?',
      hint: 'Each token attends to tokens that are like it. With nothing else, is what a token then holds different for AA and AB when no symbol is known?',
      source: { operation: 'kernel', question: { templates: ['AA', 'AB'], labels: LABELS, beta, activation, gamma: 0, cls: false } },
      read: readVerdict,
    },
    {
      name: 'overlap', topic: 'Symbols', given: 'AB 1 · Ax −1', options: VERDICTS, see: at({ 'symbols.templates': 'AB Ax' }),
      question: 'B stands for any symbol, x for itself. What does theory say of this task?',
      hint: 'Can you write a sequence that matches both? Which label would it have?',
      source: { operation: 'kernel', question: { templates: ['AB', 'Ax'], labels: LABELS, beta, activation, gamma: USUAL.gamma, cls: true } },
      read: readVerdict,
    },
    {
      name: 'fewest', topic: 'Symbols', given: '', options: ['transformer', 'KQ scaling', 'VO scaling', 'both scalings', 'mimetic start', 'last layer only', 'MLP with XXᵀ', 'one-hot MLP', 'embedding MLP'], see: { page: 'symbols' },
      question: 'Two equal symbols or two different ones? Which of these models needs the fewest training sequences to halve the loss on symbols never seen?',
      hint: 'The fewest are needed by whoever is handed what the question is about. One of these models is given every token compared with every other.',
      source: { path: 'symbols/curves/same-different.json' },
      read: readFewest,
    },
  ]; // prettier-ignore
}

function readVerdict(body: Body): Answer {
  return { right: [String(body.attrs?.verdict)], told: asOnPage(`${body.attrs?.verdict}: ${body.attrs?.why}.`.replace(/\.\.$/, '.')) };
}

/** The models whose mean loss is below a half at the fewest sequences. */
export function readFewest(body: Body): Answer {
  const first = curvesOverN(body, false).map(({ name, x, y }) => ({ name, n: x.find((_, index) => (y[index] ?? Infinity) < HALF) ?? Infinity }));
  const fewest = Math.min(...first.map(({ n }) => n));
  const right = Number.isFinite(fewest) ? first.filter(({ n }) => n === fewest).map(({ name }) => name) : [];
  const plain = first.find(({ name }) => name === 'transformer')?.n ?? Infinity;
  if (!right.length) return { right, told: 'No model halves the loss at any number of sequences that was trained.' };
  return { right, told: `${right.join(' and ')}: with ${fewest.toLocaleString('en')} sequences, the fewest that were tried with it; the transformer ${Number.isFinite(plain) ? `with ${plain.toLocaleString('en')}` : 'with none that were tried'}.` };
}
