/** Who answers live questions in a static copy: the reader's own browser. Loaded only there. */
import type { Body } from '../api/body';
import { Failure, join, type Answerer, type Part } from '../api/client';
import { OPERATIONS, commandFor } from './operations';
import type { FromWorker, ToWorker } from './worker';

interface Waiting {
  onPiece: (piece: Body | Part) => void;
  onEnd: () => void;
  onProblem: (problem: Failure) => void;
}

/** An answerer whose worker starts with the first question. */
export function browserAnswerer(): Answerer {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | null = null;
  let asked = 0;

  function start(): Worker {
    const started = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
    started.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => {
      const waits = waiting.get(data.id);
      if (!waits) return;
      if (data.kind === 'piece') return waits.onPiece(data.piece);
      waiting.delete(data.id);
      if (data.kind === 'end') waits.onEnd();
      else waits.onProblem(new Failure(data.message, data.status));
    });
    started.addEventListener('error', () => {
      for (const waits of waiting.values()) waits.onProblem(new Failure('the model could not be started here.', 500));
      waiting.clear();
    });
    started.postMessage({ kind: 'start', base: document.baseURI } satisfies ToWorker);
    return started;
  }

  function stream(operation: string, question: object, signal: AbortSignal, onPart: (body: Body) => void): Promise<Body> {
    if (!OPERATIONS.has(operation)) {
      const command = commandFor(operation, question);
      return Promise.reject(new Failure(`this copy has no server to ask; on your own machine: ${command}`, 501));
    }
    const own = (worker ??= start());
    const id = (asked += 1);
    return new Promise((resolve, reject) => {
      let body: Body | null = null;
      waiting.set(id, {
        onPiece: (piece) => {
          if (body === null) body = piece as Body;
          else join(body, piece as Part);
          onPart(body);
        },
        onEnd: () => (body ? resolve(body) : reject(new Failure('the answer was empty.', 500))),
        onProblem: reject,
      });
      signal.addEventListener('abort', () => {
        waiting.delete(id);
        own.postMessage({ kind: 'cancel', id } satisfies ToWorker);
        reject(new Failure('a newer question took the place of this one.', 409));
      });
      own.postMessage({ kind: 'ask', id, operation, question } satisfies ToWorker);
    });
  }

  return {
    operations: OPERATIONS,
    ask: (operation, question, _slot, signal) => stream(operation, question, signal, () => undefined),
    stream: (operation, question, _slot, signal, onPart) => stream(operation, question, signal, onPart),
  };
}
