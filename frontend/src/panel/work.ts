/** What a measurement or a training says of itself, in words. */
import type { Work } from '../api/client';

/** `75 %, patch grids through training, 12 s`; of a training its pace stands apart. */
export function tellWork(work: Work): string {
  const percent = work.fraction === null ? 'starting …' : `${Math.floor(100 * work.fraction)} %`;
  const title = work.kind === 'measure' ? /^\d+ % +(.+)$/.exec(work.lines.at(-1) ?? '')?.[1] : undefined;
  return [percent, title, `${Math.round(work.seconds)} s`].filter(Boolean).join(', ');
}

/** The parts of the last line of a training that tells a step: step, loss, accuracies, examples a second, time left. */
export function paceOf(lines: string[]): string[] {
  const last = lines.findLast((line) => /^step [\d,]+\/[\d,]+ /.test(line));
  return last ? last.split(/ {2,}/).map((part) => part.trim()) : [];
}

/** A name that no run has: the preset's own, or with a number behind it. */
export function freeName(preset: string, taken: Iterable<string>): string {
  const names = new Set(taken);
  let name = preset;
  for (let number = 2; names.has(name); number += 1) name = `${preset}-${number}`;
  return name;
}
