/** One program in the reader's browser: what the model answers, layer by layer, where heads look, and without some parts. */
import type { Body } from '../api/body';
import { askAgain, oneLine, stepsAsked, writeCommand } from '../api/render';
import { showSymbol, VOCABULARY } from '../program/program';
import type { Numbers } from './arithmetic';
import { counted, labelled, makeBody, showOutputs, showTokens } from './bodies';
import { runModel, toLogits, type Tap } from './forward';
import type { Model } from './model';
import { argmax, logFractions, fractionsOf } from './outcome';
import { Refusal } from './refusal';
import { readFitting, tokenIds, type Runs } from './runs';
import { readSite } from './sites';
import { keyOf, Recorder, together, Writer } from './taps';

export interface PredictQuestion {
  run: string;
  steps: number[];
  program: string;
}

export interface LensQuestion {
  run: string;
  step: number;
  program: string;
}

export interface AblateQuestion extends LensQuestion {
  sites?: string[];
  kind?: 'zero' | 'mean';
}

export interface AttentionQuestion extends LensQuestion {
  ablate?: string[];
  kind?: 'zero' | 'mean';
}

/** Probabilities of every output over (step, output). */
export async function predict(runs: Runs, question: PredictQuestion): Promise<Body> {
  const run = await runs.find(question.run);
  const program = readFitting(run, question.program);
  const fractions: number[] = [];
  for (const step of question.steps) {
    const model = await runs.model(run, step);
    fractions.push(...fractionsOf(lastRow(model, runModel(model, tokenIds(program)))));
  }
  const nOutputs = fractions.length / question.steps.length;
  const step = question.steps.length === 1 ? question.steps[0]! : null;
  return makeBody({
    title: 'What the model answers',
    run: run.name,
    step,
    sizes: { step: question.steps.length, output: nOutputs },
    coords: { step: labelled(['step'], question.steps), output: showOutputs(nOutputs) },
    variables: { probability: labelled(['step', 'output'], fractions, 'fraction') },
    attrs: { answer: String(program.answer), line_1: String(program.values[0]), depth: program.depth },
    ...askAgain('Predict', { run: run.name, program: oneLine(program.text), steps: stepsAsked(question.steps, run.steps) }),
  });
}

/** What the residual stream at each position would answer after each layer. */
export async function lens(runs: Runs, question: LensQuestion): Promise<Body> {
  const run = await runs.find(question.run);
  const program = readFitting(run, question.program);
  const model = await runs.model(run, question.step);
  const { n_layers: nLayers } = model.shape;
  const sites = [...Array.from({ length: nLayers }, (_, layer) => `L${layer}.resid_pre`), `L${nLayers - 1}.resid_post`];
  const nPositions = program.text.length;
  const readings = readLens(model, tokenIds(program), program.answer, program.values[0]!);
  const dims = ['layer', 'position'];
  return makeBody({
    title: 'What each layer would answer',
    run: run.name,
    step: question.step,
    sizes: { layer: nLayers + 1, position: nPositions },
    coords: {
      layer: counted('layer', nLayers + 1),
      position: counted('position', nPositions),
      site: labelled(['layer'], sites),
      token: showTokens(program, 'position'),
    },
    variables: {
      answer: labelled(dims, readings.answer, 'fraction'),
      line_1: labelled(dims, readings.line1, 'fraction'),
      answer_logit: labelled(dims, readings.answerLogit, 'logit'),
      line_1_logit: labelled(dims, readings.line1Logit, 'logit'),
      top: labelled(dims, readings.top),
      top_probability: labelled(dims, readings.topProbability, 'fraction'),
      entropy: labelled(dims, readings.entropy, 'bits'),
    },
    attrs: {
      title: 'logit lens of one program',
      answer_digit: String(program.answer),
      line_1_digit: String(program.values[0]),
    },
    ...askAgain('Lens', { run: run.name, program: oneLine(program.text), step: question.step }),
  });
}

function readLens(model: Model, tokens: number[], answer: number, line1: number) {
  const readings = {
    answer: [] as number[],
    line1: [] as number[],
    answerLogit: [] as number[],
    line1Logit: [] as number[],
    top: [] as string[],
    topProbability: [] as number[],
    entropy: [] as number[],
  };
  for (const stream of readStreams(model, tokens)) {
    const logits = toLogits(model, stream);
    for (let start = 0; start < logits.length; start += model.nOutputs) {
      const row = logits.subarray(start, start + model.nOutputs);
      const logged = logFractions(row);
      const best = argmax(row);
      readings.answer.push(Math.exp(logged[answer]!));
      readings.line1.push(Math.exp(logged[line1]!));
      readings.answerLogit.push(row[answer]!);
      readings.line1Logit.push(row[line1]!);
      readings.top.push(showSymbol(VOCABULARY[best]!));
      readings.topProbability.push(Math.exp(logged[best]!));
      readings.entropy.push(-logged.reduce((sum, fraction) => sum + Math.exp(fraction) * fraction, 0) / Math.LN2);
    }
  }
  return readings;
}

/** The residual stream entering each layer, and leaving the last one. */
function readStreams(model: Model, tokens: number[]): Numbers[] {
  const last = model.shape.n_layers - 1;
  const keys = [...model.layers.map((_, layer) => keyOf(layer, 'resid_pre')), keyOf(last, 'resid_post')];
  const recorder = new Recorder(new Set(keys));
  runModel(model, tokens, recorder);
  return keys.map((key) => recorder.kept.get(key)!);
}

/** Attention weights over (layer, head, query, key), perhaps without some parts. */
export async function attention(runs: Runs, question: AttentionQuestion): Promise<Body> {
  const { ablate: sites = [], kind = 'zero' } = question;
  const { run, program, model, tap } = await ablated(runs, question, sites, kind);
  const { n_layers: nLayers, n_heads: nHeads } = model.shape;
  const keys = model.layers.map((_, layer) => keyOf(layer, 'pattern'));
  const recorder = new Recorder(new Set(keys));
  runModel(model, tokenIds(program), together(tap, recorder));
  const pattern = keys.flatMap((key) => Array.from(recorder.kept.get(key)!, (weight) => Math.round(weight * 1e4) / 1e4));
  const sizes = { layer: nLayers, head: nHeads, query: program.text.length, key: program.text.length };
  const axes = Object.entries(sizes).map(([dim, length]) => [dim, counted(dim, length)]);
  return makeBody({
    title: 'Where each head attends',
    run: run.name,
    step: question.step,
    note: noteOf(sites, kind),
    sizes,
    coords: { ...Object.fromEntries(axes), token: showTokens(program, 'query') },
    variables: { pattern: labelled(Object.keys(sizes), pattern, 'fraction') },
    attrs: { answer: String(program.answer), ablated: sites.join(' ') },
    ...askAgain('Attention', { run: run.name, program: oneLine(program.text), step: question.step, ablate: sites, kind }),
  });
}

/** Probabilities over (condition: before, after; output). */
export async function ablate(runs: Runs, question: AblateQuestion): Promise<Body> {
  const { sites = [], kind = 'zero' } = question;
  const { run, program, model, tap } = await ablated(runs, question, sites, kind);
  const tokens = tokenIds(program);
  const before = fractionsOf(lastRow(model, runModel(model, tokens)));
  const after = fractionsOf(lastRow(model, runModel(model, tokens, tap)));
  return makeBody({
    title: 'The answer before and after',
    run: run.name,
    step: question.step,
    note: noteOf(sites, kind),
    sizes: { condition: 2, output: model.nOutputs },
    coords: { condition: labelled(['condition'], ['before', 'after']), output: showOutputs(model.nOutputs) },
    variables: { probability: labelled(['condition', 'output'], [...before, ...after], 'fraction') },
    attrs: { answer: String(program.answer), sites: sites.join(' ') },
    ...askAgain('Ablate', { run: run.name, program: oneLine(program.text), step: question.step, sites, kind }),
  });
}

async function ablated(runs: Runs, question: LensQuestion, sites: string[], kind: string) {
  const run = await runs.find(question.run);
  const program = readFitting(run, question.program);
  if (kind !== 'zero' && sites.length) {
    throw new Refusal(
      'means over other programs are not in this copy; replace by zero, or ask on your own machine: ' +
        writeCommand('serve', [run.name]),
    );
  }
  const model = await runs.model(run, question.step);
  const found = sites.map((site) => readSite(site, model.shape, program.text.length));
  const tap: Tap = new Writer(found, model.shape, program.text.length, null);
  return { run, program, model, tap };
}

/** The logits at the last position. */
export function lastRow(model: Model, logits: Numbers): Numbers {
  return logits.subarray(logits.length - model.nOutputs);
}

function noteOf(sites: string[], kind: string): string {
  return sites.length ? `without ${sites.join(', ')}: ${kind}` : '';
}
