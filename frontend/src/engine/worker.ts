/** The engine in a thread of its own, so that the page stays responsive. Questions are answered one after another. */
import type { Body } from '../api/body';
import type { Part } from '../api/client';
import { createEngine } from './engine';
import { Refusal } from './refusal';

export type ToWorker =
  | { kind: 'start'; base: string }
  | { kind: 'ask'; id: number; operation: string; question: object }
  | { kind: 'cancel'; id: number };

export type FromWorker =
  | { kind: 'piece'; id: number; piece: Body | Part }
  | { kind: 'end'; id: number }
  | { kind: 'problem'; id: number; message: string; status: number };

const PAUSE = 30; // milliseconds of work after which messages are looked at

let base = '';
let looked = 0; // when messages were looked at last
let atWork = 0; // the question that is being answered
const cancelled = new Set<number>();
let line: Promise<void> = Promise.resolve();
const engine = createEngine(async (path) => {
  const response = await fetch(new URL(`api/${path}`, base));
  return response.ok ? await response.arrayBuffer() : null;
}, goOn);

self.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'start') base = data.base;
  else if (data.kind === 'cancel') cancelled.add(data.id);
  else line = line.then(() => answer(data.id, data.operation, data.question));
});

async function answer(id: number, operation: string, question: object): Promise<void> {
  try {
    [atWork, looked] = [id, 0]; // what was cancelled while it waited is not begun
    await goOn();
    for await (const piece of engine(operation, question)) {
      send({ kind: 'piece', id, piece });
      await goOn();
    }
    send({ kind: 'end', id });
  } catch (problem) {
    const { message, status } = problem as { message?: string; status?: number };
    send({ kind: 'problem', id, message: message ?? String(problem), status: status ?? 400 });
  } finally {
    cancelled.delete(id);
  }
}

/** Looks at messages now and then, and ends work that nobody waits for any more. */
async function goOn(): Promise<void> {
  if (performance.now() - looked >= PAUSE) {
    await pause();
    looked = performance.now();
  }
  if (cancelled.has(atWork)) throw new Refusal('a newer question took the place of this one.', 409);
}

function send(message: FromWorker): void {
  self.postMessage(message);
}

/** Lets waiting messages in. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
