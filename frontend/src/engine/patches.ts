/** Patching one pair of programs in the reader's browser: chosen sites together, and whole grids as they are made. */
import type { Body, Labelled } from '../api/body';
import type { Part } from '../api/client';
import { askAgain, oneLine, stepsAsked, type Given } from '../api/render';
import type { Program } from '../program/program';
import { lastRow } from './answers';
import type { Numbers } from './arithmetic';
import { counted, grouped, labelled, makeBody, showOutputs, showTokens } from './bodies';
import { runModel } from './forward';
import { gridCells, type Grid, type Sides } from './grid';
import { hasMlp, type Model, type Shape } from './model';
import { measureOutcome, METRICS, fractionsOf, UNITS, type Comparison, type Metric } from './outcome';
import { Refusal } from './refusal';
import { readFitting, tokenIds, type OpenedRun, type Runs } from './runs';
import { readSite } from './sites';
import { placesOf, Recorder, Writer } from './taps';

export interface PairQuestion {
  run: string;
  program: string;
  counterfactual: string;
  direction?: 'noising' | 'denoising';
  source_step?: number | null;
}

export interface PatchQuestion extends PairQuestion {
  steps: number[];
  sites: string[];
}

export interface GridQuestion extends PairQuestion {
  step: number;
  grid?: Grid;
}

export interface Pair {
  run: OpenedRun;
  base: Program; // the one that is run
  source: Program; // the one that activations are taken from
  texts: [string, string]; // in the order of the question
}

/** Distributions over (step, condition: base, source, patched; output), and every metric over (step). */
export async function patch(runs: Runs, question: PatchQuestion): Promise<Body> {
  const pair = await readPair(runs, question);
  const { steps, sites } = question;
  const sourceModel = question.source_step == null ? null : await runs.model(pair.run, question.source_step);
  const fractions: number[] = [];
  const found: Record<Metric, number | null>[] = [];
  for (const step of steps) {
    const model = await runs.model(pair.run, step);
    const { comparison, patched } = patchSites(model, sourceModel ?? model, pair, sites);
    for (const logits of [comparison.base, comparison.source, patched]) fractions.push(...fractionsOf(logits));
    found.push(measureOutcome(patched, comparison));
  }
  const nOutputs = fractions.length / steps.length / 3;
  const step = steps.length === 1 ? steps[0]! : null;
  return makeBody({
    title: 'What the answer becomes',
    run: pair.run.name,
    step,
    note: noteOf(question),
    sizes: { step: steps.length, condition: 3, output: nOutputs },
    coords: {
      step: labelled(['step'], steps),
      condition: labelled(['condition'], ['base', 'source', 'patched']),
      output: showOutputs(nOutputs),
    },
    variables: {
      probability: labelled(['step', 'condition', 'output'], fractions, 'fraction'),
      ...byMetric((metric) => labelled(['step'], found.map((row) => row[metric]), UNITS[metric])),
    },
    attrs: { ...answersOf(pair), sites: sites.join(' ') },
    ...askAgain('Patch', { ...askedOf(pair, question), sites, steps: stepsAsked(steps, pair.run.steps) }),
  });
}

/** The body with all cells missing, then its parts one after another. */
export async function* grid(runs: Runs, question: GridQuestion): AsyncGenerator<Body | Part> {
  const pair = await readPair(runs, question);
  const kind = question.grid ?? 'residual';
  const model = await runs.model(pair.run, question.step);
  const other = question.source_step == null ? model : await runs.model(pair.run, question.source_step);
  yield emptyGrid(pair, question, kind, model);
  const sides: Sides = { model, sourceModel: other, base: tokenIds(pair.base), source: tokenIds(pair.source) };
  for (const cells of gridCells(sides, kind)) {
    const comparison = { base: cells.base, source: cells.source, ...digitsOf(pair) };
    const outcomes = cells.logits.map((logits) => measureOutcome(logits, comparison));
    yield { at: cells.at, variables: byMetric((metric) => outcomes.map((outcome) => outcome[metric])) };
  }
}

function patchSites(
  model: Model,
  sourceModel: Model,
  pair: Pair,
  texts: string[],
): { comparison: Comparison; patched: Numbers } {
  const [base, source] = [tokenIds(pair.base), tokenIds(pair.source)];
  const sites = texts.map((text) => readSite(text, model.shape, base.length));
  const recorder = new Recorder(placesOf(sites));
  const sourceLogits = lastRow(model, runModel(sourceModel, source, recorder));
  const baseLogits = lastRow(model, runModel(model, base));
  const writer = new Writer(sites, model.shape, base.length, recorder.kept);
  const patched = lastRow(model, runModel(model, base, writer));
  return { comparison: { base: baseLogits, source: sourceLogits, ...digitsOf(pair) }, patched };
}

/** The pair that a question is about, refused in the words of the server. */
export async function readPair(runs: Runs, question: PairQuestion): Promise<Pair> {
  const run = await runs.find(question.run);
  const [program, counterfactual] = [question.program, question.counterfactual].map((text) => readFitting(run, text));
  const [first, second] = [program!, counterfactual!];
  if (first.nLines !== second.nLines) {
    throw new Refusal(`the two programs have ${first.nLines} and ${second.nLines} lines; write two of equal length.`);
  }
  if (first.text === second.text) {
    throw new Refusal('the counterfactual is the same program as the base; change a constant or a variable in it.');
  }
  if (first.answer === second.answer) {
    const same = `both programs have the answer ${first.answer}`;
    throw new Refusal(`${same}; change the counterfactual so that its answer differs.`);
  }
  const [base, source] = question.direction === 'denoising' ? [second, first] : [first, second];
  return { run, base, source, texts: [first.text, second.text] };
}

function emptyGrid(pair: Pair, question: GridQuestion, kind: Grid, model: Model): Body {
  const sizes = sizesOf(kind, model.shape, pair.base.text.length);
  const dims = Object.keys(sizes);
  const nCells = Object.values(sizes).reduce((product, size) => product * size, 1);
  const missing = new Array<null>(nCells).fill(null);
  const coords: Record<string, Labelled> = {};
  for (const [dim, size] of Object.entries(sizes)) coords[dim] = counted(dim, size);
  if (kind === 'mlps') coords.layer = labelled(['layer'], layersWithMlp(model.shape));
  if (kind === 'residual') coords.token = showTokens(pair.base, 'position');
  return makeBody({
    title: { residual: 'The residual stream, position by position', heads: 'Heads', mlps: 'MLPs' }[kind],
    run: pair.run.name,
    step: question.step,
    note: noteOf(question),
    sizes,
    coords,
    variables: byMetric((metric) => labelled(dims, missing, UNITS[metric])),
    attrs: answersOf(pair),
    ...askAgain('Patch', { ...askedOf(pair, question), grid: kind, steps: question.step }),
  });
}

function sizesOf(kind: Grid, shape: Shape, nPositions: number): Record<string, number> {
  if (kind === 'residual') return { position: nPositions, layer: shape.n_layers };
  if (kind === 'heads') return { layer: shape.n_layers, head: shape.n_heads };
  const layers = layersWithMlp(shape);
  if (!layers.length) throw new Refusal('no layer of this model has an MLP.');
  return { layer: layers.length };
}

function layersWithMlp(shape: Shape): number[] {
  return Array.from({ length: shape.n_layers }, (_, layer) => layer).filter((layer) => hasMlp(shape, layer));
}

function byMetric<T>(make: (metric: Metric) => T): Record<Metric, T> {
  return Object.fromEntries(METRICS.map((metric) => [metric, make(metric)])) as Record<Metric, T>;
}

function digitsOf(pair: Pair): { baseAnswer: number; sourceAnswer: number } {
  return { baseAnswer: pair.base.answer, sourceAnswer: pair.source.answer }; // a digit is its own output
}

function answersOf(pair: Pair): Record<string, string> {
  return { base_answer: String(pair.base.answer), source_answer: String(pair.source.answer) };
}

function askedOf({ run, texts }: Pair, { direction, source_step }: PairQuestion): Record<string, Given> {
  const [program, counterfactual] = texts.map(oneLine);
  return { run: run.name, program, counterfactual, direction: direction ?? 'noising', source_step };
}

function noteOf(question: PairQuestion): string {
  return question.source_step == null ? '' : `activations taken from step ${grouped(question.source_step)}`;
}
