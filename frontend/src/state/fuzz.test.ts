import { expect, it } from 'vitest';
import { hashProblem, hashToView, viewToHash } from './hash';

/** `make fuzz` asks for more; the same seed and count give the same addresses. */
const environment = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
const [CASES, SEED] = [Number(environment.FUZZ_CASES ?? 300), Number(environment.FUZZ_SEED ?? 0)];
const PIECES = ['#', '/', '1', '/patch', '?', '&', '=', '%', '%2', '%ff', '%ED%A0%80', 'run', 'step', 'program', ';', '!', '__proto__', 'options', '-1', '1e999', '\0', 'ü', '\n'];

/** Numbers from 0 to below `most` that are the same at every run. */
function drawer(seed: number): (most: number) => number {
  let state = (seed % 2147483646) + 1;
  return (most) => (state = (state * 48271) % 2147483647) % most;
}

it('any address is read, and what was read is written and read again as the same', () => {
  const draw = drawer(SEED);
  for (let index = 0; index < CASES; index += 1) {
    const start = draw(2) ? '#/1/patch?' : '';
    const hash = start + Array.from({ length: draw(14) }, () => PIECES[draw(PIECES.length)]).join('');
    const view = hashToView(hash);
    expect(typeof hashProblem(hash)).toBe('string');
    expect(hashToView(viewToHash(view)), `case ${index} of seed ${SEED}: ${JSON.stringify(hash)}`).toEqual(view);
  }
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});
