import { expect, test } from 'vitest';
import cases from './cases.json';
import { findProblems, sampleStrings, seededRandom } from './checks';
import { canonical, findCommonString, matchString, namesOf, parseTemplate, showTemplate, splitTemplates, TemplateError } from './template';

test('a template is read as Python reads it', () => {
  for (const one of cases.templates) {
    if ('error' in one) {
      expect(() => parseTemplate(one.text), one.text).toThrow(TemplateError);
      try {
        parseTemplate(one.text);
      } catch (problem) {
        expect(one.error!.endsWith((problem as Error).message), one.error).toBe(true);
      }
      continue;
    }
    const found = parseTemplate(one.text);
    const said = { shown: showTemplate(found), length: found.length, wildcards: namesOf(found, 'wildcard'), regular: namesOf(found, 'regular') };
    expect({ text: one.text, ...said }).toEqual(one);
    expect(parseTemplate(showTemplate(found))).toEqual(found);
  }
});

test('two templates are equivalent, or match a common sequence, as Python says', () => {
  for (const { first, second, equivalent, common } of cases.pairs) {
    const [left, right] = [parseTemplate(first), parseTemplate(second)];
    expect(canonical(left) === canonical(right), `${first} ${second}`).toBe(equivalent);
    const found = findCommonString(left, right);
    expect(found, `${first} ${second}`).toEqual(common);
    if (found) for (const template of [left, right]) expect(matchString(template, found)).not.toBeNull();
  }
});

test('problems of a set are told in the words of the command', () => {
  for (const { templates, problems } of cases.sets) expect(findProblems(templates.map(parseTemplate))).toEqual(problems);
});

test('samples match their template, with different symbols for different wildcards, the same for the same seed', () => {
  for (const text of ['ABA', "A='+1','print'(A)", 'ab', 'ABCDEFGHIJKLMNOPQRSTUVWXYZα']) {
    const template = parseTemplate(text);
    const samples = sampleStrings(template, 20, seededRandom(3));
    expect(samples).toEqual(sampleStrings(template, 20, seededRandom(3)));
    for (const { string, substitution } of samples) {
      expect(matchString(template, string)).toEqual(substitution);
      expect([...substitution.values()].some((symbol) => namesOf(template, 'regular').includes(symbol))).toBe(false);
    }
  }
  expect(new Set(sampleStrings(parseTemplate('A'), 200, seededRandom(0)).map(({ string }) => string[0])).size).toBe(26);
});

test('templates are split at spaces', () => {
  expect(splitTemplates('  AA AB\n\tBx ')).toEqual(['AA', 'AB', 'Bx']);
});
