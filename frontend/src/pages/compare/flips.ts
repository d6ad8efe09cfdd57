/** Two checkpoints on the same programs: who changed its mind, and whether that can be chance. */
import type { Body, Labelled } from '../../api/body';
import { formatPercent } from '../../charts/format';
import { openedAs, writeCommand } from '../../api/render';
import type { Predictions, Program, Said } from '../../reading/predictions';

export type Kind = 'both right' | 'wrong → right' | 'right → wrong' | 'both wrong';
export const KINDS: Kind[] = ['both right', 'wrong → right', 'right → wrong', 'both wrong'];

export interface Pair {
  program: Program;
  a: Said;
  b: Said;
  kind: Kind;
}

export interface Counts {
  n: number;
  kinds: Record<Kind, number>;
  a: Fraction; // accuracy of each
  b: Fraction;
  p: number; // exact McNemar
}

export interface Fraction {
  value: number;
  low: number;
  high: number;
}

/** What both said to every program; `b` may be another run's predictions of the same programs. */
export function pairUp(a: Predictions, stepA: number, b: Predictions, stepB: number): Pair[] {
  return a.programs.map((program) => {
    const [before, after] = [a.said(stepA, program.index), b.said(stepB, program.index)];
    return { program, a: before, b: after, kind: kindOf(before.right, after.right) };
  });
}

/** Whether two sets of predictions are about the same programs, in the same order. */
export function samePrograms(a: Predictions, b: Predictions): boolean {
  return a.programs.length === b.programs.length && a.programs.every((program, index) => program.text === b.programs[index]?.text);
}

function kindOf(before: boolean, after: boolean): Kind {
  if (before) return after ? 'both right' : 'right → wrong';
  return after ? 'wrong → right' : 'both wrong';
}

export function countFlips(pairs: Pair[]): Counts {
  const kinds = Object.fromEntries(KINDS.map((kind) => [kind, pairs.filter((pair) => pair.kind === kind).length])) as Record<Kind, number>;
  const n = pairs.length;
  return {
    n,
    kinds,
    a: wilson(kinds['both right'] + kinds['right → wrong'], n),
    b: wilson(kinds['both right'] + kinds['wrong → right'], n),
    p: mcnemar(kinds['wrong → right'], kinds['right → wrong']),
  };
}

/** The 95 % Wilson interval of a fraction; a fraction of nothing is anything. */
export function wilson(hits: number, n: number): Fraction {
  if (!n) return { value: Number.NaN, low: 0, high: 1 };
  const z = 1.959963984540054;
  const fraction = hits / n;
  const scale = 1 + (z * z) / n;
  const centre = (fraction + (z * z) / (2 * n)) / scale;
  const half = (z / scale) * Math.sqrt((fraction * (1 - fraction)) / n + (z * z) / (4 * n * n));
  return { value: fraction, low: hits === 0 ? 0 : Math.max(0, centre - half), high: hits === n ? 1 : Math.min(1, centre + half) };
}

/** Exact two-sided McNemar test: were both flips equally likely, how often would they differ at least this much? */
export function mcnemar(one: number, other: number): number {
  const n = one + other;
  if (!n) return 1;
  const logs = logFactorials(n);
  let tail = 0;
  for (let hits = 0; hits <= Math.min(one, other); hits += 1) {
    tail += Math.exp((logs[n] ?? 0) - (logs[hits] ?? 0) - (logs[n - hits] ?? 0) - n * Math.LN2);
  }
  return Math.min(1, 2 * tail);
}

function logFactorials(n: number): number[] {
  const logs = [0];
  for (let number = 1; number <= n; number += 1) logs.push((logs[number - 1] ?? 0) + Math.log(number));
  return logs;
}

/** From best to worst. */
export const CHARACTERS = ['right', 'line 1', 'other line', 'no line', 'no digit'];

/** What a prediction is, in a word: it tells the right answer from the short cut and from the rest. */
export function characterOf(said: Said, program: Program): string {
  if (said.right) return 'right';
  if (said.digit < 0) return 'no digit';
  if (said.digit === program.line1) return 'line 1';
  return said.source ? 'other line' : 'no line';
}

/** How what A said became what B said, as amounts between characters. */
export function turns(pairs: Pair[]): { from: string; to: string; amount: number }[] {
  const amounts = new Map<string, number>();
  for (const { a, b, program } of pairs) {
    const key = JSON.stringify([characterOf(a, program), characterOf(b, program)]);
    amounts.set(key, (amounts.get(key) ?? 0) + 1);
  }
  return [...amounts].map(([key, amount]) => {
    const [from, to] = JSON.parse(key) as [string, string];
    return { from, to, amount };
  });
}

/** 'From A to B 141 of 300 programs turned right and none wrong: 53 % before, 100 % after.' */
export function tellFlips(pairs: Pair[]): string {
  const { n, kinds, a, b } = countFlips(pairs);
  return `From A to B ${kinds['wrong → right'] || 'none'} of ${n} programs turned right and ${kinds['right → wrong'] || 'none'} wrong: ${formatPercent(a.value)} before, ${formatPercent(b.value)} after.`;
}

/** What became of the programs that A answered by the short cut. */
export function tellTurns(pairs: Pair[]): string {
  const shortcut = pairs.filter(({ a, program }) => characterOf(a, program) === 'line 1');
  const right = shortcut.filter(({ b }) => b.right).length;
  return shortcut.length ? `Of ${shortcut.length} ${shortcut.length === 1 ? 'program' : 'programs'} that A wrongly answers with line 1’s constant, B answers ${right} right.` : 'A answers no program wrongly with line 1’s constant.';
}

/** Where answers changed most, by depth. */
export function tellChanged(pairs: Pair[]): string {
  const changed = pairs.filter(({ a, b }) => a.digit !== b.digit);
  const depths = [...new Set(pairs.map(({ program }) => program.attributes['depth'] ?? 0))].sort((one, other) => one - other);
  const told = depths.map((depth) => {
    const own = (among: Pair[]): number => among.filter(({ program }) => (program.attributes['depth'] ?? 0) === depth).length;
    return `${own(changed)} of ${own(pairs)} at depth ${depth}`;
  });
  return changed.length ? `Answers changed in ${told.join(', ')}.` : 'No answer changed.';
}

export interface Side {
  run: string;
  step: number;
}

/** Everything about the comparison as a body, so that its panels can be downloaded and made again as any other. */
export function comparisonBody(pairs: Pair[], a: Side, b: Side, from: Body): Body {
  const depths = [...new Set(pairs.map((pair) => pair.program.attributes['depth'] ?? 0))].sort((one, other) => one - other);
  const rows = [pairs, ...depths.map((depth) => pairs.filter((pair) => pair.program.attributes['depth'] === depth))].map(countFlips);
  const along = (dim: string, values: Labelled['values'], units = ''): Labelled => ({ dims: [dim], values, units });
  const counted = Object.fromEntries(KINDS.map((kind) => [kind, along('group', rows.map((row) => row.kinds[kind]), 'program')]));
  const { provenance } = from;
  const { n, seed } = provenance;
  return {
    title: `Step ${a.step} of ${a.run} against step ${b.step} of ${b.run}`,
    sizes: { group: rows.length, program: pairs.length },
    coords: {
      group: along('group', ['all', ...depths.map((depth) => `depth ${depth}`)]),
      text: along('program', pairs.map((pair) => pair.program.text)),
      depth: along('program', pairs.map((pair) => pair.program.attributes['depth'] ?? 0)),
      answer: along('program', pairs.map((pair) => pair.program.answer)),
    },
    variables: {
      n: along('group', rows.map((row) => row.n), 'program'),
      ...counted,
      accuracy_a: along('group', rows.map((row) => row.a.value), 'fraction'),
      accuracy_a_low: along('group', rows.map((row) => row.a.low), 'fraction'),
      accuracy_a_high: along('group', rows.map((row) => row.a.high), 'fraction'),
      accuracy_b: along('group', rows.map((row) => row.b.value), 'fraction'),
      accuracy_b_low: along('group', rows.map((row) => row.b.low), 'fraction'),
      accuracy_b_high: along('group', rows.map((row) => row.b.high), 'fraction'),
      p: along('group', rows.map((row) => row.p)),
      kind: along('program', pairs.map((pair) => pair.kind)),
      said_a: along('program', pairs.map((pair) => pair.a.digit)),
      said_b: along('program', pairs.map((pair) => pair.b.digit)),
    },
    attrs: { a: `${a.run} step ${a.step}`, b: `${b.run} step ${b.step}` },
    provenance: { ...provenance, run: a.run === b.run ? a.run : `${a.run}, ${b.run}`, interval: '95 % Wilson over programs; exact McNemar test' },
    command: [a, b].map((side) => writeCommand('behaviour', [side.run], { step: side.step, n, seed })).join(' && '),
    python: pythonFor(a, b),
  };
}

function pythonFor(a: Side, b: Side): string {
  const at = (side: Side): string => `predictions_at(${openedAs('run', side.run)}.result("predictions"), ${side.step})`;
  return [
    'import bindscope',
    'from bindscope.studies.binding.behaviour.measure import predictions_at',
    '',
    `before = ${at(a)}`,
    `after = ${at(b)}`,
    'learned = (~before.right & after.right).sum()',
    'lost = (before.right & ~after.right).sum()',
  ].join('\n');
}
