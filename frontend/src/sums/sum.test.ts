/** The browser's reading of sums against Python's, case by case. */
import { describe, expect, it } from 'vitest';
import cases from './cases.json';
import { isKnown, parseSum, readTokens, SumError, vocabularyOf, type SumFormat } from './sum';

interface Case {
  text: string;
  error?: string;
  facts?: { tokens: number[] } & Record<string, unknown>;
}

describe.each(cases.map(({ modulus, nVariables, operator, vocabulary, sums }) => ({ format: { modulus, nVariables, operator } as SumFormat, vocabulary, sums: sums as Case[] })))(
  'sums modulo $format.modulus with $format.operator',
  ({ format, vocabulary, sums }) => {
    const wrong = sums.filter((one) => one.error !== undefined);
    const right = sums.filter((one) => one.facts !== undefined);

    it('has cases of both kinds', () => {
      expect(wrong.length).toBeGreaterThan(20);
      expect(right.length).toBeGreaterThan(10);
      expect(isKnown(format)).toBe(true);
    });
    it('numbers tokens as Python does', () => expect(vocabularyOf(format)).toEqual(vocabulary));
    it.each(wrong)('refuses "$text" in the words of Python', ({ text, error }) => {
      let refusal: unknown;
      try {
        parseSum(text, format);
      } catch (problem) {
        refusal = problem;
      }
      expect(refusal).toBeInstanceOf(SumError);
      expect((refusal as SumError).message).toBe(error);
      expect((refusal as SumError).message).toContain(`column ${(refusal as SumError).column}:`);
    });
    it.each(right)('knows of "$text" what Python knows', ({ text, facts }) => {
      const sum = parseSum(text, format);
      expect(sum).toMatchObject(facts ?? {});
      expect(readTokens(facts?.tokens ?? [], format)).toEqual(sum);
      expect(parseSum(sum.text, format).tokens).toEqual(facts?.tokens);
    });
  },
);
