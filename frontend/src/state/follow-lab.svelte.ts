/** Keeping what is known about the lab up to date: its runs, while one of them trains, and their example programs. */
import type { Body, Value } from '../api/body';
import { Failure, read, type RunList } from '../api/client';
import { answerWith, canAsk } from './load.svelte';
import { followWork } from './work.svelte';
import { contact, currentRun, lab, type Example } from './view.svelte';

const OFTEN = 2000; // milliseconds
const SELDOM = 5000;

let asking = false;

/** Ask for the runs now, unless an answer is on its way. */
export async function refreshLab(): Promise<void> {
  if (asking) return;
  asking = true;
  try {
    const found = await read<RunList>('runs.json');
    if (JSON.stringify(found.problems) !== JSON.stringify(lab.problems)) lab.problems = found.problems;
    if (!found.live && !canAsk()) answerWith((await import('../engine/answerer')).browserAnswerer());
    lab.live = found.live;
    lab.opensDirectories = found.opens_directories;
    lab.startsWork = found.starts_work;
    lab.version = found.version;
    lab.families = found.families;
    if (JSON.stringify(found.runs) !== JSON.stringify(lab.runs)) lab.runs = found.runs; // last: pages start with it
    contact.status = 'reached';
    contact.error = '';
  } catch (problem) {
    contact.status = 'lost';
    contact.error = problem instanceof Error ? problem.message : String(problem);
  } finally {
    asking = false;
  }
}

/** Ask at the start, and again: often while a run trains or the server is gone, else seldom, for runs that are new.

A static copy is asked once. Call while the page starts. */
export function followLab(): void {
  $effect(() => void refreshLab());
  const growing = $derived(lab.live && lab.runs.some((run) => run.status === 'training'));
  $effect(() => {
    if (contact.status !== 'lost' && !lab.live) return;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void refreshLab();
    }, growing || contact.status === 'lost' ? OFTEN : SELDOM);
    return () => clearInterval(timer);
  });
  followExamples();
  followWork();
}

const EXAMPLES: Record<string, string> = { programs: 'programs.json', sums: 'sums.json' }; // by what can be asked

/** Example programs, or sums, are read once for each run that is looked at. A run that has none is no error. */
function followExamples(): void {
  const asked = new Set<string>();
  $effect(() => {
    const run = contact.status === 'reached' ? currentRun() : null;
    const kind = run?.kinds.find((each) => each in EXAMPLES);
    const file = kind && EXAMPLES[kind];
    if (!run || !file || asked.has(run.name)) return;
    asked.add(run.name);
    read<Body>(`runs/${run.name}/${file}`)
      .then((body) => (lab.examples[run.name] = examplesOf(body)))
      .catch((problem: unknown) => {
        if (problem instanceof Failure && problem.status) lab.examples[run.name] = [];
        else asked.delete(run.name); // the server is gone: ask again when it is back
      });
  });
}

function examplesOf(body: Body): Example[] {
  const column = (name: string): Value[] => ((body.variables[name] ?? body.coords[name])?.values ?? []) as Value[];
  const lines = (text: Value | undefined): string => String(text ?? '').replaceAll(';', '\n');
  const counterfactuals = column('counterfactual');
  return column('text').map((text, index) => ({ program: lines(text), counterfactual: lines(counterfactuals[index]) }));
}
