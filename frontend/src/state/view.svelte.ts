/** What the reader looks at: one object that every part of the page reads, kept in the address. */
import type { RunSummary } from '../api/client';
import { usualCounterfactual } from './counterfactual';
import { hashProblem, hashToView, START, viewToHash, type View } from './hash';

/** The state itself. Read it anywhere; change it with `go`. */
export const view: View = $state({ ...START, options: {} });

/** What was wrong with the address, if anything. */
export const address: { problem: string } = $state({ problem: '' });

/** A program that a run brings along, with its counterfactual. */
export interface Example {
  program: string;
  counterfactual: string;
}

export interface LabState {
  live: boolean; // whether a server answers questions to a model
  opensDirectories: boolean; // whether further runs may be named by their directory
  startsWork: boolean; // whether measurements and trainings may be started
  version: string;
  runs: RunSummary[];
  families: Record<string, string[]>; // what can be asked → the families whose runs can be asked that
  problems: string[]; // a sentence for each run that cannot be read
  examples: Record<string, Example[]>; // by run; a run whose examples are not known yet has no entry
}

/** What is known about the lab, filled when the page starts and again whenever a run grows. */
export const lab: LabState = $state({
  live: false,
  opensDirectories: false,
  startsWork: false,
  version: '',
  runs: [],
  families: {},
  problems: [],
  examples: {},
});

/** Change what is looked at. A change of place is a step of the back button; `replace` for what changes many times a second. */
export function go(change: Partial<View>, replace = false): void {
  Object.assign(view, change);
  if (!view.run) view.run = currentRun()?.name ?? ''; // what a reader has touched names its run: a link to it opens no other
  address.problem = '';
  const hash = viewToHash(view);
  if (hash === location.hash) return;
  if (replace) history.replaceState(null, '', hash);
  else history.pushState(null, '', hash);
}

/** A page's own setting, `option('patch.metric', 'success')`. */
export function option(name: string, usual: string): string {
  return view.options[name] ?? usual;
}

/** Keep a page's setting in the address; `step` where the back button is to bring it back. */
export function setOption(name: string, value: string, usual?: string, step = false): void {
  const options = { ...view.options };
  if (value === usual) delete options[name];
  else options[name] = value;
  go({ options }, !step);
}

/** Whether the lab was reached, and if not, why. */
export const contact: { status: 'waiting' | 'reached' | 'lost'; error: string } = $state({ status: 'waiting', error: '' });

/** The run that is looked at, or the first. */
export function currentRun(): RunSummary | null {
  return lab.runs.find((run) => run.name === view.run) ?? lab.runs[0] ?? null;
}

/** The checkpoint that is looked at: the saved step nearest to the one in the address, or the last. */
export function currentStep(): number {
  return nearest(currentRun()?.steps ?? [], view.step);
}

/** The program that is looked at, lines joined by line breaks: the one in the address, or the run's first example, or empty. */
export function currentProgram(): string {
  return view.program || (examples()[0]?.program ?? '');
}

/** Its counterfactual: the one in the address, or the example's, or the program with the constant that answers it changed. */
export function currentCounterfactual(): string {
  if (view.counterfactual) return view.counterfactual;
  const program = currentProgram();
  return examples().find((example) => example.program === program)?.counterfactual || usualCounterfactual(program);
}

function examples(): Example[] {
  return lab.examples[currentRun()?.name ?? ''] ?? [];
}

export function nearest(steps: number[], wanted: number | null): number {
  if (!steps.length) return 0;
  if (wanted === null) return steps[steps.length - 1] ?? 0;
  return steps.reduce((best, step) => (Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best));
}

/** Follow the address bar and the back button; call once. */
export function followAddress(): () => void {
  const read = (): void => {
    Object.assign(view, hashToView(location.hash));
    address.problem = hashProblem(location.hash);
  };
  read();
  window.addEventListener('hashchange', read);
  window.addEventListener('popstate', read);
  return () => {
    window.removeEventListener('hashchange', read);
    window.removeEventListener('popstate', read);
  };
}
