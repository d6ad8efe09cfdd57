import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { holdsFrom, tellAnnouncements, tellDiagnostic, tellIdentifiers, tellLookbacks, tellMixture } from './findings';

type Values = (number | string | null)[];
const labelled = (dims: string[], values: Values) => ({ dims, values, units: '' });
const made = (coords: Record<string, Values>, variables: Record<string, ReturnType<typeof labelled>>): Body =>
  ({
    title: 'made', variables,
    sizes: Object.fromEntries(Object.entries(coords).map(([name, values]) => [name, values.length])),
    coords: Object.fromEntries(Object.entries(coords).map(([name, values]) => [name, labelled([name], values)])),
  }) as unknown as Body; // prettier-ignore

it('a condition holds from the first step after which it is not broken', () => {
  const held = [true, false, true, true];
  expect(holdsFrom([0, 1, 2, 3], (index) => held[index] ?? false)).toBe(2);
  expect(holdsFrom([0, 1], () => false)).toBeNull();
  expect(holdsFrom([5, 6], () => true)).toBe(5);
});

it('a mixture is told by the account that leads at the end and the one before', () => {
  const accounts = ['early', 'lexical', 'positional', 'reflexive', 'unchanged', 'other'];
  const weight = [0.9, 0, 0, 0, 0, 0.1, 0.8, 0.2, 0, 0, 0, 0, 0.1, 0.9, 0, 0, 0, 0];
  const body = made({ step: [0, 400, 500], layer: [1], position: ['end'], account: accounts }, { weight: labelled(['step', 'layer', 'position', 'account'], weight) });
  expect(tellMixture(body, 1)).toBe('Entering layer 1 the end is lexical at the last checkpoint, 90 %, the most of all accounts since step 500; at step 400 it was early, 80 %.');
});

it('a positional account that is as wide as a program says so', () => {
  const weight = [0.1, 0, 0.8, 0, 0, 0.1, 0, 0.9, 0.1, 0, 0, 0];
  const accounts = ['early', 'lexical', 'positional', 'reflexive', 'unchanged', 'other'];
  const told = (sigma: number): string =>
    tellMixture(
      made(
        { step: [400, 500], layer: [1], position: ['end'], account: accounts },
        { weight: labelled(['step', 'layer', 'position', 'account'], weight), sigma: labelled(['step', 'layer', 'position'], [sigma, 0.5]) },
      ),
      1,
    );
  expect(told(3)).toMatch(/at step 400 it was positional, 80 % with σ = 3 lines, so that nearly any line of a short program serves\.$/);
  expect(told(0.5)).toMatch(/it was positional, 80 %\.$/);
});

describe('identifiers', () => {
  const told = (mean: number, low: number): string => {
    const coords = { step: [0], intervention: ['mean', 'random vector'], part: ['value'], layer: [0] };
    const dims = ['step', 'intervention', 'part', 'layer'];
    return tellIdentifiers(made(coords, { swapped: labelled(dims, [mean, 0.1]), swapped_low: labelled(dims, [low, 0]), swapped_high: labelled(dims, [1, 0.2]) }));
  };
  it('are there where a mean difference swaps clearly more than its control', () => {
    expect(told(0.9, 0.7)).toContain('As identifiers would');
    expect(told(0.9, 0.7)).toContain('90 % (70 to 100) of the answers at the last checkpoint (values entering layer 0), random vectors 10 % (0 to 20)');
  });
  it('are not told from less than the control’s interval', () => {
    expect(told(0.15, 0.1)).toMatch(/^No sign of identifiers/);
  });
});

it('lookbacks are told by their best layer beyond the first', () => {
  const coords = { step: [0, 100], layer: [0, 1, 2], moved: ['both'], position: ['end'], came: ['pointer', 'payload'] };
  const body = made(coords, {
    binding: labelled(['step', 'layer', 'moved'], [1, 0, 0, 1, 0.2, 0.6]),
    end: labelled(['step', 'layer', 'position', 'came'], [0, 0, 0.7, 0, 0, 0, 0, 0, 0.9, 0, 0, 0.3]),
  });
  expect(tellLookbacks(body)).toBe('At the last checkpoint: address 60 % (L2, in half since step 100), pointer 90 % (L1, in half since step 0), payload 30 % (L2, never in half).');
});

it('a diagnostic is told by its largest change, without its reference', () => {
  const x = [0, 100, 200];
  const series = [{ name: 'L0', x, y: [1, 1.1, 1.2] }, { name: 'L1', x, y: [1, 3, null] }, { name: 'true', x, y: [0, 9, 0], dashed: true }]; // prettier-ignore
  expect(tellDiagnostic(series, 'repetition')).toBe('The repetition changes most between steps 0 and 100: from 1 to 3 (L1).');
  expect(tellDiagnostic([], 'repetition')).toBe('');
});

it('announcements are told beside accident, and not where nothing can be told', () => {
  const row = (announces: boolean, baseRate: number | null) => ({ number: 'a', departs: 1, lead: 1, announces, baseRate });
  expect(tellAnnouncements([row(true, 0.5), row(false, 0.5), row(true, 0.25)])).toBe('2 of 3 numbers leave their range before the answers do; of as many that only fluctuate 1.3 would.');
  expect(tellAnnouncements([row(false, null)])).toContain('cannot be told');
});
