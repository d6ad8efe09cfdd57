/** Everything the page asks of its server: files to read, and live questions. No address outside this origin is used. */
import type { Body, Value } from './body';
import type { components } from './schema';

export type RunList = components['schemas']['RunList'];
export type RunSummary = components['schemas']['RunSummary'];
export type RunDetail = components['schemas']['RunDetail'];
export type PresetList = components['schemas']['PresetList'];
export type Work = Required<components['schemas']['Work']>;
export type Kind = Work['kind'];

/** Results of a run that are not measured yet. */
export interface Missing {
  run: string;
  results: string[];
}

/** A refusal or failure, in the words of the server. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly missing: Missing | null = null,
  ) {
    super(message);
  }
}

/** A slice of a streamed answer: values from index `at` on, in the order of the variable's axes. */
export interface Part {
  at: number;
  variables: Record<string, Value[]>;
}

/** Who answers live questions: the server, or in a static copy the reader's own browser. */
export interface Answerer {
  readonly operations?: ReadonlySet<string>; // what it can answer; everything when left out
  ask(operation: string, question: object, slot: string, signal: AbortSignal): Promise<Body>;
  stream(
    operation: string,
    question: object,
    slot: string,
    signal: AbortSignal,
    onPart: (body: Body) => void,
  ): Promise<Body>;
}

/** Read a stored body: `read('runs/binding-laptop/trajectory.json')`. */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await reach(`api/${path}`, { signal });
  if (!response.ok) throw await failure(response);
  return (await response.json()) as T;
}

/** Show the run in a directory of the server's machine; the name under which it is shown. */
export async function openDirectory(path: string): Promise<string> {
  const response = await post('open', { path }, '');
  return ((await response.json()) as components['schemas']['OpenedRun']).name;
}

/** Have the server measure results of a run, in the background. */
export async function measure(missing: Missing): Promise<Work> {
  return (await (await post('measure', missing, '')).json()) as Work;
}

/** Have it train a preset, or go on with a run that was interrupted. */
export async function train(question: { preset: string; name: string; seed: number } | { run: string }): Promise<Work> {
  return (await (await post('run' in question ? 'resume' : 'train', question, '')).json()) as Work;
}

/** Have it stop what is measured or trained. */
export async function stopWork(kind: Kind): Promise<Work> {
  return (await (await post('stop', { kind }, '')).json()) as Work;
}

export const server: Answerer = {
  async ask(operation, question, slot, signal) {
    return (await (await post(`live/${operation}`, question, slot, signal)).json()) as Body;
  },
  async stream(operation, question, slot, signal, onPart) {
    const response = await post(`live/${operation}`, question, slot, signal);
    let body: Body | null = null;
    for await (const line of lines(response)) {
      const content = JSON.parse(line) as Body | Part | { error: string };
      if ('error' in content) throw new Failure(content.error, 400);
      if (body === null) body = content as Body;
      else join(body, content as Part);
      onPart(body);
    }
    if (body === null) throw new Failure('the answer was empty.', 500);
    return body;
  },
};

/** Put a part into the body it belongs to. */
export function join(body: Body, part: Part): void {
  for (const [name, values] of Object.entries(part.variables)) {
    const target = body.variables[name]?.values;
    values.forEach((value, index) => {
      if (target) target[part.at + index] = value as never;
    });
  }
}

async function post(path: string, question: object, slot: string, signal?: AbortSignal): Promise<Response> {
  const response = await reach(`api/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Slot': slot },
    body: JSON.stringify(question),
    signal,
  });
  if (!response.ok) throw await failure(response);
  return response;
}

/** A server that cannot be reached is a failure of status 0; browsers each have their own words for it. */
async function reach(path: string, settings: RequestInit): Promise<Response> {
  try {
    return await fetch(path, settings);
  } catch (problem) {
    if (problem instanceof TypeError) throw new Failure('the server does not answer.', 0);
    throw problem;
  }
}

async function failure(response: Response): Promise<Failure> {
  try {
    const content = (await response.json()) as { error?: string };
    return new Failure(content.error ?? response.statusText, response.status);
  } catch {
    return new Failure(`${response.status} ${response.statusText}`, response.status);
  }
}

async function* lines(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? '';
    const whole = rest.split('\n');
    rest = done ? '' : (whole.pop() ?? '');
    for (const line of whole) if (line) yield line;
    if (done) return;
  }
}
