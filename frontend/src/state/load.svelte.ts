/** What a panel shows while it waits, when it has something, and when something went wrong. */
import { untrack } from 'svelte';
import type { Body } from '../api/body';
import { Failure, read, server, type Answerer, type Missing } from '../api/client';
import { Cache } from './cache';
import { contact, lab } from './view.svelte';

export interface Loaded<T = Body> {
  readonly status: 'empty' | 'loading' | 'ready' | 'error';
  readonly body: T | null; // kept while the next one is on its way
  readonly error: string;
  readonly final?: boolean; // the question itself was wrong: only another one helps
  readonly missing?: Missing | null; // results that would give it, or more of it, once they are measured
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
const ABSENT = 501; // the status of what nobody here has: a sentence says how to get it
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
  const reason = (body as { absent?: string }).absent;
  if (reason) throw new Failure(reason, ABSENT, missingOf(body));
  cache.set(key, body);
  return body;
}

/** What is still to be measured for a body; null where nothing is. */
export function missingOf(body: unknown): Missing | null {
  const { missing, provenance } = body as Partial<Body>;
  return missing?.length && provenance?.run ? { run: provenance.run, results: missing } : null;
}

/** What changes when the files behind a path do. */
function versionOf(path: string): string {
  const name = /^runs\/([^/]+)\//.exec(path)?.[1];
  return lab.runs.filter((run) => name === undefined || run.name === name).map((run) => run.version).join();
}

type Fetch<Q, T> = (wanted: Q, signal: AbortSignal, onPart: (body: T) => void) => Promise<T>;
type Known<Q, T> = (wanted: Q) => T | undefined;

/** Ask whatever is wanted now, and again whenever that changes. */
function follow<Q, T>(wanted: () => Q | null, fetch: Fetch<Q, T>, known: Known<Q, T> = () => undefined): Loaded<T> {
  const followed = new Followed<Q, T>(fetch, known);
  $effect(() => followed.stop);
  $effect(() => {
    if (contact.status === 'reached') untrack(followed.retryUnreached);
  });
  $effect(() => {
    const question = wanted();
    const attempt = followed.attempt;
    untrack(() => followed.ask(question, attempt));
  });
  return followed;
}

class Followed<Q, T> implements Loaded<T> {
  status = $state<Loaded['status']>('empty');
  body = $state.raw<T | null>(null);
  error = $state('');
  refused = $state(false);
  final = $state(false);
  missing = $state.raw<Missing | null>(null);
  attempt = $state(0);
  #asked = ''; // the question as text: an equal one is not asked again
  #underWay = new AbortController();
  #unreached = false; // the last question did not come to the server, or not to its end

  constructor(
    readonly fetch: Fetch<Q, T>,
    readonly known: Known<Q, T>,
  ) {}

  ask(question: Q | null, attempt: number): void {
    const key = `${attempt} ${JSON.stringify(question)}`;
    if (key === this.#asked) return;
    this.#asked = key;
    this.stop();
    this.#underWay = new AbortController();
    if (question === null) {
      this.status = 'empty';
      this.body = null;
      return;
    }
    const kept = this.known(question);
    if (kept !== undefined) return this.#show(kept);
    this.status = 'loading';
    const { signal } = this.#underWay;
    this.fetch(question, signal, (part) => {
      if (!signal.aborted) this.body = { ...part };
    })
      .then((answer) => {
        if (!signal.aborted) this.#show({ ...answer });
      })
      .catch((problem: unknown) => {
        if (!signal.aborted) this.#fail(problem);
      });
  }

  stop = (): void => this.#underWay.abort();

  retry = (): void => void (this.attempt += 1);

  /** The server is back: ask what it did not hear. */
  retryUnreached = (): void => {
    if (this.#unreached) this.retry();
    this.#unreached = false;
  };

  #show(body: T): void {
    this.body = body;
    this.error = '';
    this.missing = missingOf(body);
    this.status = 'ready';
  }

  #fail(problem: unknown): void {
    const status = problem instanceof Failure ? problem.status : null;
    if (status === 409) return; // a newer question took its place
    this.refused = status === ABSENT;
    this.missing = problem instanceof Failure ? problem.missing : null;
    this.final = status === 400 || status === 422;
    this.#unreached = status === 0 || status === 500 || status === 503; // a server that ends breaks off what it is doing
    this.error = problem instanceof Error ? problem.message : String(problem);
    this.status = 'error';
    if (status === 0) Object.assign(contact, { status: 'lost', error: this.error }); // the page as a whole says so
  }
}
