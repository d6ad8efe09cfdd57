import { expect, it } from 'vitest';
import { isBody, showProvenance } from './provenance';
import { fileName } from './save';

it('provenance says what is known and leaves out what is not', () => {
  const none = { run: '', step: null, n: null, seed: null, interval: '', note: '' };
  expect(showProvenance(none)).toBe('');
  expect(showProvenance({ run: 'binding-laptop', step: 3700, n: 1240, seed: 0, interval: '95 % Wilson', note: 'roots on lines 1 and 2 left out' })).toBe(
    'binding-laptop · step 3,700 · n = 1,240 · seed 0 · 95 % Wilson · roots on lines 1 and 2 left out',
  );
  expect(showProvenance({ ...none, run: 'r', step: 0 })).toBe('r · step 0');
});

it('a labelled dataset is told from other things', () => {
  expect(isBody({ sizes: {}, variables: {}, provenance: {} })).toBe(true);
  for (const other of [null, 3, 'text', {}, { summary: {} }]) expect(isBody(other)).toBe(false);
});

it('files are named by what they hold', () => {
  expect(fileName('What the model answers?', 'binding-laptop', 3700)).toBe('what-the-model-answers-binding-laptop-3700');
  expect(fileName('…', undefined, null)).toBe('bindscope');
});
