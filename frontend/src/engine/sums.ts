/** One sum in the reader's browser: where the model attends, and what it answers, at one checkpoint or at several. */
import type { Body } from '../api/body';
import { askAgain, stepsAsked } from '../api/render';
import { OPERAND_POSITIONS, PAD } from '../sums/sum';
import { lastRow } from './answers';
import { counted, labelled, makeBody } from './bodies';
import { runModel } from './forward';
import { fractionsOf } from './outcome';
import { Refusal } from './refusal';
import { readSum, type Runs } from './runs';
import { keyOf, Recorder } from './taps';

export interface SumQuestion {
  run: string;
  steps: number[];
  sequence: string;
}

/** Attention over (step, layer, query, key), four decimals, and probabilities over (step, output). */
export async function answerSum(runs: Runs, { run: name, steps, sequence }: SumQuestion): Promise<Body> {
  const run = await runs.find(name);
  const sum = readSum(run, sequence);
  const { n_heads: nHeads, n_layers: nLayers } = run.shape;
  if (nHeads !== 1) throw new Refusal(`one map a layer is drawn for models of one head; this one has ${nHeads} heads a layer.`);
  const patterns: number[] = [];
  const fractions: number[] = [];
  for (const step of steps) {
    const model = await runs.model(run, step);
    const keys = model.layers.map((_, layer) => keyOf(layer, 'pattern'));
    const recorder = new Recorder(new Set(keys));
    fractions.push(...fractionsOf(lastRow(model, runModel(model, sum.tokens, recorder))));
    for (const key of keys) for (const weight of recorder.kept.get(key)!) patterns.push(Math.round(weight * 1e4) / 1e4);
  }
  const nTokens = sum.tokens.length;
  const nOutputs = fractions.length / steps.length;
  const symbols = sum.symbols.map((symbol) => (symbol === PAD ? '·' : symbol));
  const step = steps.length === 1 ? steps[0]! : null;
  return makeBody({
    title: 'Where the model attends, and what it answers',
    run: run.name,
    step,
    sizes: { step: steps.length, layer: nLayers, query: nTokens, key: nTokens, output: nOutputs, operand: 2 },
    coords: {
      step: labelled(['step'], steps),
      layer: labelled(['layer'], Array.from({ length: nLayers }, (_, layer) => layer + 1)),
      query: counted('query', nTokens),
      key: counted('key', nTokens),
      token: labelled(['query'], symbols),
      key_token: labelled(['key'], symbols),
      output: labelled(['output'], Array.from({ length: nOutputs }, (_, number) => String(number))),
      operand_position: labelled(['operand'], OPERAND_POSITIONS),
      value_position: labelled(['operand'], sum.operands.map((operand) => operand.valuePosition)),
      value: labelled(['operand'], sum.operands.map((operand) => operand.value)),
    },
    variables: {
      pattern: labelled(['step', 'layer', 'query', 'key'], patterns, 'fraction'),
      probability: labelled(['step', 'output'], fractions, 'fraction'),
    },
    attrs: { text: sum.text, answer: String(sum.answer) },
    ...askAgain('Sum', { run: run.name, sequence: sum.text, steps: stepsAsked(steps, run.steps) }),
  });
}
