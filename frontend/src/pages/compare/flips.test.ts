import { describe, expect, it } from 'vitest';
import { numbers } from '../../api/body';
import { madePredictions } from '../../reading/made';
import { readPredictions } from '../../reading/predictions';
import { characterOf, comparisonBody, countFlips, KINDS, mcnemar, pairUp, samePrograms, tellChanged, tellFlips, tellTurns, turns, wilson } from './flips';

// answers 4, 7, 3, 5; constants of line 1: 4, 4, 1, 5
const body = madePredictions([4, 4, 3, -1, /**/ 4, 7, 1, 9]);
const predictions = readPredictions(body);
const pairs = pairUp(predictions, 0, predictions, 1);

describe('flips', () => {
  it('sorts every program into one of four kinds', () => {
    expect(pairs.map((pair) => pair.kind)).toEqual(['both right', 'wrong → right', 'right → wrong', 'both wrong']);
    const counts = countFlips(pairs);
    expect(KINDS.reduce((sum, kind) => sum + counts.kinds[kind], 0)).toBe(counts.n);
    expect([counts.a.value, counts.b.value]).toEqual([0.5, 0.5]);
  });
  it('sees no flip between a checkpoint and itself, and the reverse the other way round', () => {
    const same = countFlips(pairUp(predictions, 1, predictions, 1));
    expect([same.kinds['wrong → right'], same.kinds['right → wrong'], same.p]).toEqual([0, 0, 1]);
    const back = countFlips(pairUp(predictions, 1, predictions, 0));
    expect(back.kinds['right → wrong']).toBe(countFlips(pairs).kinds['wrong → right']);
  });
  it('tells what each said', () => {
    expect(pairs.map((pair) => characterOf(pair.a, pair.program))).toEqual(['right', 'line 1', 'right', 'no digit']);
    expect(turns(pairs).reduce((sum, turn) => sum + turn.amount, 0)).toBe(4);
  });
  it('says what turned, what became of the short cut, and at which depths answers changed', () => {
    expect(tellFlips(pairs)).toBe('From A to B 1 of 4 programs turned right and 1 wrong: 50 % before, 50 % after.');
    expect(tellFlips(pairUp(predictions, 1, predictions, 1))).toContain('none of 4 programs turned right and none wrong');
    expect(tellTurns(pairs)).toBe('Of 1 program that A wrongly answers with line 1’s constant, B answers 1 right.');
    expect(tellTurns(pairs.slice(0, 1))).toBe('A answers no program wrongly with line 1’s constant.');
    expect(tellChanged(pairUp(predictions, 1, predictions, 1))).toBe('No answer changed.');
    expect(tellChanged(pairs)).toMatch(/^Answers changed in (\d of \d at depth \d(, )?)+\.$/);
  });
  it('only compares runs on the same programs', () => {
    expect(samePrograms(predictions, readPredictions(madePredictions([0, 0, 0, 0])))).toBe(true);
    const other = madePredictions([0, 0, 0, 0]);
    (other.coords['text']!.values as unknown[])[2] = 'a=1\n#a:';
    expect(samePrograms(predictions, readPredictions(other))).toBe(false);
  });
  it('makes a body whose groups by depth add up to the whole', () => {
    const made = comparisonBody(pairs, { run: 'made', step: 0 }, { run: 'made', step: 100 }, body);
    for (const kind of KINDS) {
      const [all, ...depths] = numbers(made, kind);
      expect(depths.reduce<number>((sum, count) => sum + (count ?? 0), 0)).toBe(all);
    }
    for (const array of Object.values({ ...made.variables, ...made.coords })) {
      expect(array.values.length).toBe(made.sizes[array.dims[0] ?? '']);
    }
  });
});

describe('how sure', () => {
  it("is Wilson's interval", () => {
    const { low, high } = wilson(8, 10);
    expect(low).toBeCloseTo(0.4902, 4);
    expect(high).toBeCloseTo(0.9433, 4);
    expect(wilson(0, 10).low).toBe(0);
    expect(wilson(10, 10).high).toBe(1);
    expect([wilson(0, 0).low, wilson(0, 0).high]).toEqual([0, 1]);
  });
  it('is the exact binomial tail', () => {
    expect(mcnemar(0, 0)).toBe(1);
    expect(mcnemar(3, 3)).toBe(1);
    expect(mcnemar(0, 5)).toBeCloseTo(2 / 32, 10);
    expect(mcnemar(1, 4)).toBeCloseTo((2 * (1 + 5)) / 32, 10);
    expect(mcnemar(4, 1)).toBeCloseTo(mcnemar(1, 4), 12);
    expect(mcnemar(0, 300)).toBeCloseTo(2 ** -299, 95);
    expect(mcnemar(0, 300)).toBeGreaterThan(0);
  });
});
