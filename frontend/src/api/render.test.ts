import { expect, test } from 'vitest';
import { openedAs, toCommand, writeCommand } from './render';

test('a command that no question stands behind is written by the same rules', () => {
  expect(writeCommand('behaviour', ['my run'], { step: 600, by: 'root-line', keep: true, n: null, seed: 0 })).toBe(
    `bindscope behaviour 'my run' --step 600 --by root-line --keep --seed 0`,
  );
  expect(writeCommand('serve')).toBe('bindscope serve');
  expect(writeCommand('predict', ['laptop', 'a=5;#a:'], { steps: 'all' })).toBe(toCommand('Predict', { run: 'laptop', program: 'a=5;#a:', steps: 'all' }));
});

test('a run is opened in Python by its name', () => {
  expect(openedAs('run', 'a "b"')).toBe(String.raw`bindscope.open_run("a \"b\"")`);
});
