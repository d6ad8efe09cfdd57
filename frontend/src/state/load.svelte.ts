/** What a panel shows while it waits, when it has something, and when something went wrong. */
import type { Body } from '../api/body';
import { Failure, read, server, type Answerer } from '../api/client';

export interface Loaded<T = Body> {
  readonly status: 'empty' | 'loading' | 'ready' | 'error';
  readonly body: T | null; // kept while the next one is on its way
  readonly error: string;
  retry(): void;
}

export interface Asked {
  operation: string;
  question: object;
  streamed?: boolean;
}

let answerer: Answerer = server;
let slots = 0;

/** Let someone else answer live questions: the browser itself, in a static copy. */
export function answerWith(other: Answerer): void {
  answerer = other;
}

/** Read a stored body, and again whenever the path changes; null means there is nothing to read. Call while a component starts. */
export function load<T = Body>(path: () => string | null): Loaded<T> {
  return follow<string, T>(path, (wanted, signal) => read<T>(wanted, signal));
}

/** Ask a live question, and again whenever it changes; an older question is cancelled. */
export function ask(question: () => Asked | null): Loaded {
  const slot = `${Math.random().toString(36).slice(2)}-${(slots += 1)}`;
  return follow<Asked, Body>(question, (wanted, signal, onPart) =>
    wanted.streamed
      ? answerer.stream(wanted.operation, wanted.question, slot, signal, onPart)
      : answerer.ask(wanted.operation, wanted.question, slot, signal),
  );
}

function follow<Q, T>(
  wanted: () => Q | null,
  fetch: (wanted: Q, signal: AbortSignal, onPart: (body: T) => void) => Promise<T>,
): Loaded<T> {
  let status = $state<Loaded['status']>('empty');
  let body = $state.raw<T | null>(null);
  let error = $state('');
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
    retry: () => (attempt += 1),
  };
}
