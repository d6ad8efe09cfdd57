/** A walk through the pages, each stop with the settings that show something there, found from the run's own phases. */
import type { RunSummary } from '../../api/client';
import { START, viewToHash, type View } from '../../state/hash';

export interface Stop {
  page: string;
  title: string;
  see: string; // what there is to see
  href: string;
}

/** A saved step in the midst of a phase, or a given fraction of the way through it; null where the run has no such phase or saved nothing of it. */
export function stepWithin(run: RunSummary, phase: string, fraction = 0.5): number | null {
  const span = run.phases.find((found) => found.name === phase);
  const kept = run.steps.filter((step) => span && span.first_step <= step && step <= span.last_step);
  return kept[Math.min(kept.length - 1, Math.floor(kept.length * fraction))] ?? null;
}

/** The stops whose pages exist, for what the run is about. */
export function tourOf(run: RunSummary, pages: readonly string[], program = '', counterfactual = ''): Stop[] {
  const stops = [...stopsFor(run, program, counterfactual), symbolsStop()];
  return stops.filter((found) => pages.includes(found.page));
}

function stopsFor(run: RunSummary, program: string, counterfactual: string): Stop[] {
  if (run.kinds.includes('sums')) return sumStops(run, program);
  if (run.kinds.includes('programs')) return programStops(run, program, counterfactual);
  return run.kinds.includes('templates') ? templateStops(run) : plainStops(run);
}

/** The page that is about no run, and so a stop of every walk. */
function symbolsStop(): Stop {
  return {
    page: 'symbols',
    title: 'Symbols never seen',
    see: 'How many sequences each model needs before it answers about new symbols, why wider ones may need more, and what theory says of templates that you type.',
    href: viewToHash({ ...START, page: 'symbols' }),
  };
}

/** A walk for a run on templates. */
function templateStops(run: RunSummary): Stop[] {
  const stop = stopsOf(run);
  return [
    stop('trajectory', 'Watch it learn', 'Loss on training sequences and on symbols that training never shows.'),
    stop('claims', 'Check the paper', 'Each published claim beside what the experiments here show, with its control.'),
    stop('runs', 'Settings', 'With which settings it was trained, and which other runs are open here.'),
  ];
}

/** A walk for a run on anything else. */
function plainStops(run: RunSummary): Stop[] {
  const stop = stopsOf(run);
  const claims = stop('claims', 'Check the claims', 'Each claim about such runs beside what this one shows, with its control.');
  return [
    stop('trajectory', 'Watch it learn', 'Accuracy and loss of every split at each evaluation.'),
    ...(run.kinds.includes('claims') ? [claims] : []),
    stop('runs', 'Settings', 'With which settings it was trained, and which other runs are open here.'),
  ];
}

type Describe = (page: string, title: string, see: string, change?: Partial<View>) => Stop;

function stopsOf(run: RunSummary): Describe {
  return (page, title, see, change = {}) => ({
    page,
    title,
    see,
    href: viewToHash({ ...START, page, run: run.name, ...change, options: { ...change.options } }),
  });
}

/** A walk for a run on modular addition. */
function sumStops(run: RunSummary, program: string): Stop[] {
  const stop = stopsOf(run);
  const early = stepWithin(run, 'addition', 1);
  return [
    stop('trajectory', 'Watch it learn', 'Sums of two numbers first, sums with variables long after, those with variables in new positions last of all.'),
    stop('arithmetic', 'Look a variable up, then add', 'Nine splits with their sudden jumps, seven measures of the circuit, its matrices and neurons at every checkpoint, your own sum, and parts moved from one checkpoint into another.', { step: early, program }),
    stop('claims', 'Check the paper', 'Each published claim beside what this run shows, with its control.'),
    stop('runs', 'Settings', 'With which settings it was trained, and which other runs are open here.'),
  ];
}

/** A walk for a run on programs. */
function programStops(run: RunSummary, program: string, counterfactual: string): Stop[] {
  const stop = stopsOf(run);
  const early = stepWithin(run, 'heuristic');
  const pair = { program, counterfactual };
  return [
    stop('trajectory', 'Watch it learn', 'Accuracy rises in stages. While it rests in the middle, the model agrees with a rule that reads the first lines alone.', { options: { 'trajectory.sources': 'difference' } }),
    stop('program', 'Ask it half-way', 'In the heuristic phase the answer is often the constant of line 1, whatever is asked. Change that line and see the answer follow it.', { step: early, ...pair }),
    stop('checkpoint', 'Where answers come from', 'At the same checkpoint: from which lines the predicted digits come, and how often line 1 is said where that is wrong.', { step: early, options: { 'checkpoint.by': 'depth', 'checkpoint.quantity': 'followed_where_wrong' } }),
    stop('compare', 'What changed in between', 'Pin A stands in the heuristic phase, pin B at the end: which programs became right, and did any become wrong?', { ...pair, a: early, b: run.steps.at(-1) ?? null }),
    stop('logits', 'Layer by layer', 'At the end of training the answer appears only in late layers. Is the constant of line 1 still there before it?', pair),
    stop('patch', 'Follow the value', 'Replace one activation at a time by that of the counterfactual. The sites where the answer follows are the way the value takes.', pair),
    stop('attention', 'Who moves it', 'Heads that look from a variable to where it was assigned carry out one hop each.', pair),
    stop('subspace', 'Names and values apart', 'Names and values lie along different directions. Exchange only those, and see whether the answer follows.', pair),
    stop('claims', 'Does it hold?', 'Each claim of the paper with the numbers of this run and the figure behind them.'),
  ];
}
