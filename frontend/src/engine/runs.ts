/** The runs of a static copy: their settings, and their models, read when they are first asked for. */
import type { Body } from '../api/body';
import type { RunDetail } from '../api/client';
import { writeCommand } from '../api/render';
import { readProgram, tokensOf, type Program } from '../program/program';
import { formatOfTask, isKnown, parseSum, type Sum, type SumFormat } from '../sums/sum';
import { buildModel, type Model, type Shape } from './model';
import { Refusal } from './refusal';
import { readTensors, type Tensor } from './safetensors';

/** Reads a file of the copy: `read('runs/binding-laptop/run.json')`; null when it is not there. */
export type ReadFile = (path: string) => Promise<ArrayBuffer | null>;

/** Asked before each model: what nobody waits for any more ends here, by what it throws. */
export type GoOn = () => Promise<void>;

export interface OpenedRun {
  readonly name: string;
  readonly steps: readonly number[];
  readonly shape: Shape;
  readonly family: string;
  readonly kinds: readonly string[];
  readonly task: Readonly<Record<string, unknown>>;
}

const N_MODELS = 32; // models cached in memory: a megabyte or so each

export class Runs {
  readonly #read: ReadFile;
  readonly #goOn: GoOn;
  readonly #runs = new Map<string, Promise<OpenedRun>>();
  readonly #models = new Map<string, Promise<Model>>();

  constructor(read: ReadFile, goOn: GoOn = () => Promise.resolve()) {
    this.#read = read;
    this.#goOn = goOn;
  }

  find(name: string): Promise<OpenedRun> {
    return remember(this.#runs, name, async () => {
      const file = await this.#read(`runs/${encodeURIComponent(name)}/run.json`);
      if (!file) throw new Refusal(`there is no run '${name}' here.`, 404);
      const detail = JSON.parse(new TextDecoder().decode(file)) as RunDetail;
      const config = detail.config as { model: Shape; task: Record<string, unknown> };
      const { family, kinds, steps } = detail.summary;
      return { name, steps, shape: config.model, family, kinds, task: config.task };
    });
  }

  /** The model at a step; the one that was used longest ago is forgotten first. */
  async model(run: OpenedRun, step: number): Promise<Model> {
    await this.#goOn();
    if (!run.steps.includes(step)) throw new Refusal(`${run.name}: step ${step} is not in this copy.`, 404);
    const key = `${run.name} ${step}`;
    const found = remember(this.#models, key, async () => buildModel(run.shape, await this.tensors(run, step)));
    this.#models.delete(key);
    this.#models.set(key, found);
    for (const oldest of this.#models.keys()) {
      if (this.#models.size <= N_MODELS) break;
      this.#models.delete(oldest);
    }
    return found;
  }

  /** The weights of a step as they are stored, the reader's own to change. */
  async tensors(run: OpenedRun, step: number): Promise<Map<string, Tensor>> {
    if (!run.steps.includes(step)) throw new Refusal(`${run.name}: step ${step} is not in this copy.`, 404);
    const file = await this.#read(`runs/${encodeURIComponent(run.name)}/weights/${step}.safetensors`);
    if (!file) throw new Refusal(`the weights of ${run.name} are not in this copy.`, 404);
    return readTensors(file);
  }

  /** A stored body of a run: `body(run, 'parts.json')`. */
  async body(run: OpenedRun, name: string): Promise<Body> {
    const file = await this.#read(`runs/${encodeURIComponent(run.name)}/${name}`);
    if (!file) throw new Refusal(`${run.name}: ${name} is not in this copy.`, 404);
    return JSON.parse(new TextDecoder().decode(file)) as Body;
  }
}

/** A reader's program as the run's task reads it and its model can take it. */
export function readFitting(run: OpenedRun, text: string): Program {
  const { name, family, kinds, task } = run;
  if (!kinds.includes('programs')) throw new Refusal(`${name}: its task is ${family}; programs are for runs on binding or code.`);
  if (task.form !== undefined) {
    throw new Refusal(`${name}: its programs are written as text for a language model; open it with 'bindscope serve' to ask it.`);
  }
  const program = readProgram(text, Number(task.reassign ?? 0) > 0);
  const [most, nTokens] = [run.shape.n_positions, program.text.length];
  if (nTokens > most) {
    const sizes = `${program.nLines} lines and ${nTokens} tokens`;
    throw new Refusal(`the program has ${sizes}; the model reads ${most}: leave out lines.`);
  }
  return program;
}

/** A reader's sum as the run's task reads it. */
export function readSum(run: OpenedRun, text: string): Sum {
  return parseSum(text, formatOf(run));
}

/** What the sums of a run are like; a run on something else is refused, and an operator that is not known here. */
export function formatOf({ name, family, kinds, task }: OpenedRun): SumFormat {
  if (!kinds.includes('sums')) throw new Refusal(`${name}: its task is ${family}; sums are for runs on assign_add.`);
  const format = formatOfTask(task);
  if (!isKnown(format)) {
    throw new Refusal(`the browser does not know the operator '${format.operator}'; on your own machine: ${writeCommand('serve', [name])}`);
  }
  return format;
}

export function tokenIds(program: Program): number[] {
  return tokensOf(program).map((token) => token.id);
}

/** What was made under a key, or is made now; a failure is not remembered. */
function remember<T>(kept: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  let found = kept.get(key);
  if (!found) {
    found = make();
    kept.set(key, found);
    found.catch(() => kept.delete(key));
  }
  return found;
}
