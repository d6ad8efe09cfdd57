/** A walk through the pages, each stop with one panel, one task and the settings that show something there, found from the run's own phases. */
import type { RunSummary } from '../api/client';
import { stepWithin } from '../reading/phases';
import { hashToView, START, viewToHash, type View } from '../state/hash';

export interface Stop {
  page: string;
  title: string;
  panel: string; // which one is pointed out, by its title
  see: string; // what there is to see
  task: string; // one thing to do
  view: View;
}

/** The stops whose pages exist, for what the run is about. */
export function tourOf(run: RunSummary, pages: readonly string[], program = '', counterfactual = ''): Stop[] {
  const stops = stopsFor(run).filter((found) => pages.includes(found.page));
  return stops.map((stop) => ({ ...stop, view: { ...stop.view, run: run.name, program, counterfactual } }));
}

function stopsFor(run: RunSummary): Stop[] {
  if (run.kinds.includes('programs')) return programStops(run);
  if (run.kinds.includes('sums')) return sumStops(run);
  return run.kinds.includes('templates') ? templateStops(run) : plainStops(run);
}

type Words = Pick<Stop, 'title' | 'panel' | 'see' | 'task'>;

function stop(page: string, words: Words, change: Partial<View> = {}): Stop {
  return { page, ...words, view: { ...START, page, ...change, options: { ...change.options } } };
}

/** A walk for a run on programs. */
function programStops(run: RunSummary): Stop[] {
  const early = stepWithin(run, 'heuristic');
  return [
    stop('start', {
      title: 'One question, three answers', panel: 'One program, asked in each phase',
      see: 'The same program is asked at a checkpoint of every phase; the mark below the grid is at the right answer.',
      task: 'Find the phase in which the constant of line 1 is said, and the one in which the chain is followed.',
    }),
    stop('program', {
      title: 'Ask it half-way', panel: 'What the model answers',
      see: 'In the heuristic phase the answer is often the constant of an early line, whatever is asked.',
      task: 'Change the digit of line 1 in the editor. Does the answer follow it, though the question has not changed?',
    }, { step: early }),
    stop('trajectory', {
      title: 'Watch it learn', panel: 'Accuracy',
      see: 'Accuracy rises in stages, each stage a phase, drawn as a band behind the curves.',
      task: 'Click the curve where it rises fastest: the slider above moves to that checkpoint, on every page.',
    }),
    stop('checkpoint', {
      title: 'Where answers come from', panel: 'Where predictions come from',
      see: 'From which lines the predicted digits come at a checkpoint of the heuristic phase, beside where the answers are.',
      task: 'Move the slider to the end of training. Do predictions come from the lines that the answers are on?',
    }, { step: early, options: { 'checkpoint.by': 'depth', 'checkpoint.quantity': 'followed_where_wrong' } }),
    stop('patch', {
      title: 'The circuit', panel: 'What moves where',
      see: 'Arrows say which heads carry the value, or the name to look up next, from which token to which, in which layer.',
      task: 'Follow the arrows from the constant to the answer, and click one to patch its heads.',
    }),
    stop('attention', {
      title: 'The heads at work', panel: 'All heads',
      see: 'Every head’s attention at the end of training. A head that makes a hop attends from a variable to where it was assigned.',
      task: 'Click a head that the circuit named, and read which token it attends to.',
    }),
    stop('subspace', {
      title: 'Names and values apart', panel: 'Swaps on many pairs, with controls',
      see: 'Names and values lie along different directions. Only that part of a state is exchanged between two programs, and the answer is read.',
      task: 'Compare the swap with its controls: how much of the effect would any subspace of this size have?',
    }),
    stop('claims', {
      title: 'Does it hold?', panel: 'Published claims against this run',
      see: 'Each claim of the paper with the numbers of this run, its control and a verdict.',
      task: 'Open a claim whose verdict is not “replicates” and read why.',
    }),
  ]; // prettier-ignore
}

/** A walk for a run on modular addition. */
function sumStops(run: RunSummary): Stop[] {
  const early = stepWithin(run, 'addition', 1);
  const at = (tab: string, change: Partial<View> = {}): Partial<View> => ({ ...change, options: tab === 'learning' ? {} : { 'arithmetic.tab': tab } });
  return [
    stop('start', {
      title: 'One sum, every phase', panel: 'One sum, asked in each phase',
      see: 'The same sum is asked at a checkpoint of every phase; the mark below the grid is at the right answer.',
      task: 'Find the first phase in which the answer is right.',
    }),
    stop('trajectory', {
      title: 'Watch it learn', panel: 'Accuracy',
      see: 'Sums of two numbers first, sums with variables long after.',
      task: 'Click the curve at its steepest: the slider above moves there, on every page.',
    }),
    stop('arithmetic', {
      title: 'Nine kinds of sums', panel: 'Nine splits over training',
      see: 'Each kind of sum is learnt at a time of its own, several of them in a sudden jump.',
      task: 'Which kind is learnt last? Read its curve where it jumps.',
    }, at('learning')),
    stop('arithmetic', {
      title: 'Your own sum', panel: 'What the model answers to it',
      see: 'Numbers are added already, variables are not looked up yet: the answer to a sum with a variable is a guess.',
      task: 'Replace a variable by its number in the sum. Is the answer right now?',
    }, at('sum', { step: early })),
    stop('arithmetic', {
      title: 'The circuit in the weights', panel: 'Layer 2: copies of variables',
      see: 'What the weights alone make of a variable: a bright diagonal means that each attends to its own copy.',
      task: 'Move the slider back until the diagonal is gone.',
    }, at('weights')),
    stop('arithmetic', {
      title: 'Neurons that add', panel: 'Every neuron as a Fourier component',
      see: 'Addition modulo a prime is made of a few frequencies. Each neuron is fitted by one.',
      task: 'Click a neuron and compare its fit with what it does.',
    }, at('neurons')),
    stop('arithmetic', {
      title: 'What makes a jump', panel: 'Parts of another checkpoint',
      see: 'One part of the model after a jump is put into the model before it.',
      task: 'Find the part that alone makes most of the jump.',
    }, at('jumps')),
    stop('claims', {
      title: 'Does it hold?', panel: 'Published claims against this run',
      see: 'Each claim of the paper with the numbers of this run, its control and a verdict.',
      task: 'Open a claim whose verdict is not “replicates” and read why.',
    }),
  ]; // prettier-ignore
}

/** A walk for a run on templates, and on to the experiments about symbols, which are about no run. */
function templateStops(run: RunSummary): Stop[] {
  const symbols = (tab: string, words: Words): Stop => stop('symbols', words, { options: tab === 'curves' ? {} : { 'symbols.tab': tab } });
  return [
    learning(),
    symbols('curves', {
      title: 'Symbols never seen', panel: 'What each model needs',
      see: 'How many sequences each model needs before it answers about symbols that training never showed.',
      task: 'Which model needs the fewest, and how many more does the plain transformer need?',
    }),
    symbols('templates', {
      title: 'Templates of your own', panel: 'Can it be learnt?',
      see: 'What theory says of an infinitely wide transformer: a task can be learnt where the matrix N is not singular.',
      task: 'Type “AA AB” in place of the templates. How does the smallest eigenvalue change?',
    }),
    ...claimsAndRuns(run),
  ]; // prettier-ignore
}

/** A walk for a run on anything else. */
function plainStops(run: RunSummary): Stop[] {
  return [learning(), ...claimsAndRuns(run)];
}

function learning(): Stop {
  return stop('trajectory', {
    title: 'Watch it learn', panel: 'Accuracy',
    see: 'Accuracy of every split at each evaluation.',
    task: 'Click the curve at its steepest: the slider above moves there.',
  }); // prettier-ignore
}

function claimsAndRuns(run: RunSummary): Stop[] {
  const claims = stop('claims', {
    title: 'Does it hold?', panel: 'Published claims against this run',
    see: 'Each claim about such runs beside what this one shows, with its control.',
    task: 'Open a claim and read what would have made it fail.',
  });
  const runs = stop('runs', {
    title: 'Settings', panel: 'Settings',
    see: 'With which settings it was trained, and which other runs are open here.',
    task: 'Find another run that differs in one setting.',
  });
  return [...(run.kinds.includes('claims') ? [claims] : []), runs];
}

const [STOP, FROM] = ['tour.stop', 'tour.from']; // settings in the address: which stop, counted from 1, and the address that the reader came from

/** The address of a stop, and in it the way back to where the reader was. */
export function stopHash(stop: Stop, index: number, from: string): string {
  return viewToHash({ ...stop.view, options: { ...stop.view.options, [STOP]: String(index + 1), [FROM]: from } });
}

/** Where on the tour an address is; null when on none. */
export function placeOnTour(view: View, stops: readonly Stop[]): { index: number; stop: Stop; from: string; away: boolean } | null {
  const number = Number(view.options[STOP] ?? NaN);
  if (!Number.isFinite(number) || !stops.length) return null;
  const index = Math.min(stops.length, Math.max(1, Math.trunc(number))) - 1;
  const stop = stops[index]!;
  const tab = `${stop.page}.tab`;
  return { index, stop, from: view.options[FROM] ?? '', away: view.page !== stop.page || view.options[tab] !== stop.view.options[tab] };
}

/** Where leaving the tour leads: the page as it was, or, where the address does not say, this page without the tour. */
export function leaveHash(view: View): string {
  const from = view.options[FROM];
  if (from) return viewToHash(hashToView(from));
  const options = Object.fromEntries(Object.entries(view.options).filter(([name]) => name !== STOP && name !== FROM));
  return viewToHash({ ...view, options });
}
