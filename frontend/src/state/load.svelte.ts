/** What a panel shows while it waits, when it has something, and when something went wrong. */
import { untrack } from 'svelte';
import type { Body } from '../api/body';
import { Failure, read, server, type Answerer } from '../api/client';
import { Cache } from './cache';
import { contact, lab } from './view.svelte';

export interface Loaded<T = Body> {
  readonly status: 'empty' | 'loading' | 'ready' | 'error';
  readonly body: T | null; // kept while the next one is on its way
  readonly error: string;
  readonly refused?: boolean; // nobody here can answer it, and asking again will not help
  retry(): void;
}

export interface Asked {
  operation: string;
  question: object;
  streamed?: boolean;
}

let answerer = $state.raw<Answerer>(server);
let slots = 0;
const cache = new Cache<unknown>(80);

/** Let someone else answer live questions: the browser itself, in a static copy. */
export function answerWith(other: Answerer): void {
  answerer = other;
}

/** Whether live questions are answered at all: by a server, or by whoever took its place. */
export function canAsk(): boolean {
  return lab.live || answerer !== server;
}

/** Whether this operation is: the browser knows some of them only. */
export function canAnswer(operation: string): boolean {
  return canAsk() && (answerer.operations?.has(operation) ?? true);
}

/** Read a stored body, and again whenever the path changes; null means there is nothing to read. Call while a component starts.

A body is kept for as long as its run stays as it is. `growing`: read it again whenever the run has grown. */
export function load<T = Body>(path: () => string | null, { growing = false } = {}): Loaded<T> {
  return follow<{ path: string; version: string }, T>(
    () => {
      const wanted = path();
      return wanted === null ? null : { path: wanted, version: growing ? versionOf(wanted) : '' };
    },
    ({ path }, signal) => readOnce<T>(path, signal),
    ({ path }) => cache.get(`${versionOf(path)} ${path}`) as T | undefined,
  );
}

/** Ask a live question, and again whenever it changes; an older question is cancelled. */
export function ask(question: () => Asked | null): Loaded {
  const slot = `${Math.random().toString(36).slice(2)}-${(slots += 1)}`;
  return follow<Asked, Body>(
    () => (canAsk() ? question() : null),
    (wanted, signal, onPart) =>
      wanted.streamed
        ? answerer.stream(wanted.operation, wanted.question, slot, signal, onPart)
        : answerer.ask(wanted.operation, wanted.question, slot, signal),
  );
}

async function readOnce<T>(path: string, signal: AbortSignal): Promise<T> {
  const key = `${versionOf(path)} ${path}`;
  const body = await read<T>(path, signal);
  cache.set(key, body);
  return body;
}

/** What changes when the files behind a path do. */
function versionOf(path: string): string {
  const name = /^runs\/([^/]+)\//.exec(path)?.[1];
  return lab.runs.filter((run) => name === undefined || run.name === name).map((run) => run.version).join();
}

function follow<Q, T>(
  wanted: () => Q | null,
  fetch: (wanted: Q, signal: AbortSignal, onPart: (body: T) => void) => Promise<T>,
  known: (wanted: Q) => T | undefined = () => undefined,
): Loaded<T> {
  let status = $state<Loaded['status']>('empty');
  let body = $state.raw<T | null>(null);
  let error = $state('');
  let refused = $state(false);
  let attempt = $state(0);
  let asked = ''; // the question as text: an equal one is not asked again
  let stop = new AbortController();
  $effect(() => () => stop.abort());
  $effect(() => {
    const question = wanted();
    const key = `${attempt} ${JSON.stringify(question)}`;
    if (key === asked) return;
    asked = key;
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    if (question === null) {
      status = 'empty';
      body = null;
      return;
    }
    const kept = untrack(() => known(question));
    if (kept !== undefined) {
      body = kept;
      error = '';
      status = 'ready';
      return;
    }
    status = 'loading';
    const current = (): boolean => asked === key;
    fetch(question, signal, (part) => {
      if (current()) body = { ...part };
    })
      .then((answer) => {
        if (!current()) return;
        body = { ...answer };
        error = '';
        status = 'ready';
      })
      .catch((problem: unknown) => {
        if (!current() || signal.aborted) return;
        if (problem instanceof Failure && problem.status === 409) return; // a newer question took its place
        if (problem instanceof Failure && problem.status === 0) Object.assign(contact, { status: 'lost', error: problem.message }); // the page as a whole says so
        refused = problem instanceof Failure && problem.status === 501;
        error = problem instanceof Error ? problem.message : String(problem);
        status = 'error';
      });
  });
  return {
    get status() {
      return status;
    },
    get body() {
      return body;
    },
    get error() {
      return error;
    },
    get refused() {
      return refused;
    },
    retry: () => (attempt += 1),
  };
}
