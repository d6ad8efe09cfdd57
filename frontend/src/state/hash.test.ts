import { describe, expect, it } from 'vitest';
import { hashProblem, hashToView, START, VERSION, viewToHash, type View } from './hash';

/** A small generator with a seed, so that a failure can be seen again. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const CHARACTERS = [...'ab5=;:!#%&?+/\\\n\r\t "\'<>`{}|^~.,@é€😀\u2028\0'];

function anyText(random: () => number, longest: number): string {
  return Array.from({ length: Math.floor(random() * longest) }, () => CHARACTERS[Math.floor(random() * CHARACTERS.length)]).join('');
}

function anyView(random: () => number): View {
  const step = (): number | null => (random() < 0.3 ? null : Math.floor(random() * 200_000));
  const names = Array.from({ length: Math.floor(random() * 4) }, () => `page.${anyText(random, 6)}`);
  return {
    page: ['start', 'patch', 'logits', 'two-words', 'study2'][Math.floor(random() * 5)] ?? 'start',
    run: anyText(random, 12),
    step: step(),
    a: step(),
    b: step(),
    program: anyText(random, 60),
    counterfactual: anyText(random, 60),
    scale: random() < 0.5 ? 'log' : 'linear',
    options: Object.fromEntries(names.map((name) => [name, anyText(random, 20)])),
  };
}

describe('the address', () => {
  it('gives back every view that was written into it', () => {
    const random = generator(1);
    for (let trial = 0; trial < 2000; trial += 1) {
      const view = anyView(random);
      expect(hashToView(viewToHash(view))).toEqual(view);
    }
  });

  it('stays as it is when a browser reads it as part of a URL', () => {
    const random = generator(2);
    for (let trial = 0; trial < 500; trial += 1) {
      const hash = viewToHash(anyView(random));
      expect(new URL(hash, 'http://localhost/').hash).toBe(hash);
    }
  });

  it('can be read and typed by a person', () => {
    const view = { ...START, page: 'patch', run: 'binding-laptop', step: 3700, program: 'a=5\nb=a\n#b:', options: { 'patch.metric': 'success' } };
    expect(viewToHash(view)).toBe('#/1/patch?run=binding-laptop&step=3700&program=a=5;b=a;!b:&patch.metric=success');
  });

  it('of another version is the start, and says so', () => {
    const hash = `#/${VERSION + 1}/patch?run=x`;
    expect(hashToView(hash)).toEqual(START);
    expect(hashProblem(hash)).toContain(`version ${VERSION + 1}`);
    expect(hashProblem(`#/${VERSION}/patch?run=x`)).toBe('');
    expect(hashProblem('')).toBe('');
    expect(hashProblem('#nonsense')).not.toBe('');
  });

  it('never throws, whatever it holds', () => {
    const random = generator(3);
    const pieces = ['#/1/', 'patch', '?', '%', '%E0%A4', '%%', '&', '=', 'step=', 'step=-1', 'step=1e999', '__proto__.x=1', 'constructor=1', '\ud800', '9'.repeat(400)];
    for (let trial = 0; trial < 3000; trial += 1) {
      const hash = Array.from({ length: 8 }, () => (random() < 0.6 ? pieces[Math.floor(random() * pieces.length)] : anyText(random, 8))).join('');
      const view = hashToView(hash);
      expect(Object.keys(view).sort()).toEqual(Object.keys(START).sort());
      expect(view.step === null || Number.isSafeInteger(view.step)).toBe(true);
      expect(() => viewToHash(view)).not.toThrow();
    }
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    expect(hashToView(`#/1/patch?run=${'x'.repeat(30_000)}`)).toEqual(START);
  });

  it('writes what cannot be encoded without throwing', () => {
    expect(() => viewToHash({ ...START, run: '\ud800', program: '\udfff' })).not.toThrow();
  });
});
