/** Answers live questions from the files of a static copy, as the server does from a run's directory. */
import type { Body } from '../api/body';
import type { Part } from '../api/client';
import { ablate, attention, lens, predict, type AblateQuestion, type AttentionQuestion } from './answers';
import type { LensQuestion, PredictQuestion } from './answers';
import { moves, type MovesQuestion } from './moves';
import { grid, patch, type GridQuestion, type PatchQuestion } from './patches';
import { commandFor } from './operations';
import { answerSum, type SumQuestion } from './sums';
import { Refusal } from './refusal';
import { Runs, type GoOn, type ReadFile } from './runs';
import { answerKernel, answerSamples, type KernelQuestion, type SamplesQuestion } from './templates';
import { transplant, type TransplantQuestion } from './transplants';

/** What an operation gives: a body, then, where it is streamed, parts of it. */
export type Answer = AsyncGenerator<Body | Part>;

/** `for await (const piece of engine('predict', question)) …`; `goOn` may end the work before each model. */
export function createEngine(read: ReadFile, goOn?: GoOn): (operation: string, question: object) => Answer {
  const runs = new Runs(read, goOn);
  const single: Record<string, (question: object) => Promise<Body>> = {
    predict: (question) => predict(runs, question as PredictQuestion),
    lens: (question) => lens(runs, question as LensQuestion),
    attention: (question) => attention(runs, question as AttentionQuestion),
    ablate: (question) => ablate(runs, question as AblateQuestion),
    sum: (question) => answerSum(runs, question as SumQuestion),
    transplant: (question) => transplant(runs, question as TransplantQuestion),
    kernel: async (question) => answerKernel(question as KernelQuestion),
    samples: async (question) => answerSamples(question as SamplesQuestion),
    patch: (question) => patch(runs, question as PatchQuestion),
  };
  return async function* (operation, question) {
    const answer = single[operation];
    if (answer) yield await answer(question);
    else if (operation === 'grid') yield* grid(runs, question as GridQuestion);
    else if (operation === 'moves') yield* moves(runs, question as MovesQuestion);
    else throw new Refusal(`this copy has no server to ask; on your own machine: ${commandFor(operation, question)}`, 501);
  };
}
