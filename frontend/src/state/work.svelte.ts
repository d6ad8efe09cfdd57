/** What the server measures and trains for the page: asked for while any of it goes on. */
import { untrack } from 'svelte';
import { read, stopWork, type Kind, type Work } from '../api/client';
import { refreshLab } from './follow-lab.svelte';
import { lab } from './view.svelte';

const EVERY = 1000; // milliseconds

const state = $state<{ list: Work[] }>({ list: [] });

/** What of this kind is at work, or was last; undefined where nothing was begun. */
export function workOf(kind: Kind): Work | undefined {
  return state.list.find((work) => work.kind === kind);
}

export function goesOn(work: Work | undefined): boolean {
  return work !== undefined && (work.status === 'at work' || work.status === 'stopping');
}

/** Take in what an answer says of a piece of work, which it started or stopped. */
export function tookUp(work: Work): void {
  state.list = [...state.list.filter((other) => other.kind !== work.kind), work];
}

/** Stop what is at work. */
export async function stop(kind: Kind): Promise<void> {
  tookUp(await stopWork(kind));
}

/** Ask once at the start, and every second while something goes on. Call while the page starts. */
export function followWork(): void {
  $effect(() => {
    if (lab.startsWork) untrack(() => void refresh()); // it reads the list that it writes: tracked, each answer would ask again
  });
  const going = $derived(lab.startsWork && state.list.some(goesOn));
  $effect(() => {
    if (!going) return;
    const timer = setInterval(() => void refresh(), EVERY);
    return () => clearInterval(timer);
  });
}

async function refresh(): Promise<void> {
  const went = state.list.filter(goesOn).length;
  try {
    state.list = (await read<{ work: Work[] }>('work.json')).work;
  } catch {
    return; // the page as a whole says that the server is gone
  }
  if (state.list.filter(goesOn).length < went) await refreshLab(); // something ended: runs and results are others now
}
