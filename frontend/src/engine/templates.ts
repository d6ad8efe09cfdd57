/** Kernels and sequences of templates in the reader's browser: the bodies that the server makes of the same questions. */
import type { Body } from '../api/body';
import { askAgain } from '../api/render';
import type { ActivationName } from '../kernel/activation';
import { judgeTemplates, type Estimate } from '../kernel/learnable';
import { describeMatch, findProblems, sampleStrings, seededRandom } from '../templates/checks';
import { canonical, parseTemplate, showTemplate, type Template } from '../templates/template';
import { labelled, makeBody } from './bodies';
import { Refusal } from './refusal';

export interface KernelQuestion {
  templates: string[];
  labels?: number[] | null;
  beta?: number;
  gamma?: number;
  activation?: ActivationName;
  cls?: boolean;
  points?: number;
  seed?: number;
}

export interface SamplesQuestion {
  templates: string[];
  n?: number;
  seed?: number;
}

export const MOST_TEMPLATES = 8;
export const MOST_TOKENS = 10;
const [N_INNER, N_RANDOMISATIONS] = [16, 16];
const NOTE = 'computed in this browser';

export function answerKernel({ templates, labels = null, beta = 3, gamma = 1, activation = 'cos', cls = true, points = 512, seed = 0 }: KernelQuestion): Body {
  const parsed = readAll(templates);
  refuseKernel(parsed, labels);
  const sampling = { nOuter: 2 ** Math.ceil(Math.log2(points)), nInner: N_INNER, nRandomisations: N_RANDOMISATIONS };
  const report = judgeTemplates(parsed, labels, { beta, gamma, activation, cls, sampling }, seededRandom(seed));
  const names = parsed.map(showTemplate);
  const n = names.length;
  const [pair, only] = [['template', 'other'], ['eigenvalue']];
  const part = (dims: string[], estimates: Estimate[], name: keyof Estimate) => labelled(dims, estimates.map((estimate) => estimate[name]));
  return makeBody({
    title: 'N and what it says',
    run: '',
    step: null,
    n: sampling.nOuter * N_INNER * N_RANDOMISATIONS,
    seed,
    interval: '95 % by leaving out each random shift',
    note: `n points of a shifted lattice, ${NOTE}`,
    sizes: { template: n, other: n, eigenvalue: n, null: report.nullDirections.length, overlap: report.overlaps.length },
    coords: { template: labelled(['template'], names), other: labelled(['other'], names), eigenvalue: labelled(only, names.map((_, index) => index)) },
    variables: {
      kernel: part(pair, report.matrix, 'value'),
      kernel_error: part(pair, report.matrix, 'error'),
      attention: part(pair, report.attention, 'value'),
      attention_error: part(pair, report.attention, 'error'),
      with_itself: part(['template'], report.withItself, 'value'),
      with_itself_error: part(['template'], report.withItself, 'error'),
      eigenvalue_value: part(only, report.eigenvalues, 'value'),
      eigenvalue_error: part(only, report.eigenvalues, 'error'),
      eigenvalue_low: part(only, report.eigenvalues, 'low'),
      eigenvalue_high: part(only, report.eigenvalues, 'high'),
      null_direction: labelled(['null', 'template'], report.nullDirections.flat()),
      ...(labels ? { label: labelled(['template'], labels) } : {}),
      overlap_first: labelled(['overlap'], report.overlaps.map(({ first }) => first)),
      overlap_second: labelled(['overlap'], report.overlaps.map(({ second }) => second)),
      overlap_sequence: labelled(['overlap'], report.overlaps.map(({ string }) => string.join(' '))),
    },
    attrs: { beta, gamma, activation, cls: cls ? 1 : 0, points, seed, verdict: report.verdict, why: report.why },
    ...askAgain('Kernel', { templates: names, labels, beta, gamma, activation, cls, points, seed }),
  });
}

export function answerSamples({ templates, n = 5, seed = 0 }: SamplesQuestion): Body {
  const parsed = readAll(templates);
  const random = seededRandom(seed);
  const samples = parsed.flatMap((template) => sampleStrings(template, n, random).map((sample) => ({ template: showTemplate(template), ...sample })));
  const problems = findProblems(parsed);
  const texts = parsed.map(showTemplate);
  return makeBody({
    title: 'Sequences of these templates',
    run: '',
    step: null,
    n,
    seed,
    note: `n sequences of each template, ${NOTE}: the command draws others`,
    sizes: { sample: samples.length, problem: problems.length },
    coords: {},
    variables: {
      template: labelled(['sample'], samples.map(({ template }) => template)),
      sequence: labelled(['sample'], samples.map(({ string }) => string.join(' '))),
      substitution: labelled(['sample'], samples.map(({ substitution }) => (substitution.size ? describeMatch(substitution) : ''))),
      problem_text: labelled(['problem'], problems),
    },
    attrs: {},
    ...askAgain('TemplateSamples', { templates: texts, n, seed }),
  });
}

function readAll(templates: string[]): Template[] {
  if (!templates.length || templates.length > MOST_TEMPLATES) throw new Refusal(`templates: give 1 to ${MOST_TEMPLATES}, got ${templates.length}.`);
  return templates.map((text) => {
    try {
      return parseTemplate(text);
    } catch (problem) {
      throw new Refusal(`Template ${text}: ${(problem as Error).message}`);
    }
  });
}

function refuseKernel(templates: Template[], labels: number[] | null): void {
  const long = templates.find((template) => template.length > MOST_TOKENS);
  if (long) throw new Refusal(`Template ${showTemplate(long)}: at most ${MOST_TOKENS} tokens can be asked here.`);
  if (labels && labels.length !== templates.length) throw new Refusal(`labels: ${templates.length} templates need as many labels, got ${labels.length}.`);
  const [first] = templates as [Template];
  for (const [place, template] of templates.entries()) {
    if (template.length !== first.length) {
      throw new Refusal(`Templates ${showTemplate(first)} and ${showTemplate(template)} have ${first.length} and ${template.length} tokens; make them equal.`);
    }
    const same = templates.slice(0, place).find((other) => canonical(other) === canonical(template));
    if (same) throw new Refusal(`Templates ${showTemplate(same)} and ${showTemplate(template)} are equivalent; remove one of them.`);
  }
}
