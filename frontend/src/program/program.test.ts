/** The browser's reading of programs against Python's, case by case, and edits against what they promise. */
import { describe, expect, it } from 'vitest';
import cases from './cases.json';
import { dereference } from './dereference';
import {
  CHANGES,
  changesOf,
  differences,
  findChange,
  freeNames,
  namesBefore,
  referenceLines,
  refusePair,
  usualChange,
  withChange,
  withConstant,
  withNamesSwapped,
  withQuery,
  withReference,
  withRootConstant,
  type Kind,
} from './edits';
import { parseProgram, positionOf, ProgramError, readProgram, tokensOf, VOCABULARY, type Program } from './program';

interface Case {
  text: string;
  reassignment: boolean;
  error?: string;
  facts?: Record<string, unknown>;
}
const all = cases.programs as Case[];
const wrong = all.filter((one) => one.error !== undefined);
const right = all.filter((one) => one.facts !== undefined);
const programs = right.map((one): Program => parseProgram(one.text, one.reassignment));

describe('reading a program', () => {
  it('has cases of both kinds, each of which is one or the other', () => {
    expect(wrong.length).toBeGreaterThan(50);
    expect(right.length).toBeGreaterThan(30);
    expect(wrong.length + right.length).toBe(all.length);
  });

  it('numbers tokens as Python does', () => expect(VOCABULARY).toEqual(cases.vocabulary));

  it.each(wrong)('refuses $text in the words of Python', ({ text, reassignment, error }) => {
    const refusal = refuse(() => parseProgram(text, reassignment));
    expect(refusal.message).toBe(error);
    const named = /^line (\d+):/.exec(refusal.message);
    expect(refusal.line).toBe(named ? Number(named[1]) : null);
  });

  it.each(right)('knows of $text what Python knows', ({ text, reassignment, facts }) => {
    const program = parseProgram(text, reassignment);
    const { tokens, parts, lines, changedRoot, ...rest } = facts ?? {};
    expect(program).toMatchObject(rest);
    const found = tokensOf(program);
    expect(found.map((token) => token.id)).toEqual(tokens);
    expect(found.map((token) => token.part)).toEqual(parts);
    expect(found.map((token) => token.line)).toEqual(lines);
    expect(found.map((token) => positionOf(program, token.part, token.line))).toEqual(found.map((_, index) => index));
    expect(withRootConstant(program, (program.answer + 1) % 10).text).toBe(changedRoot);
  });

  it('takes ; for a line break where it is asked to', () => {
    expect(readProgram('a=5;b=a;#b:').text).toBe('a=5\nb=a\n#b:');
  });
});

describe('pairs', () => {
  it.each(cases.pairs)('are refused in the words of Python: $error', ({ base, counterfactual, error }) => {
    expect(refusePair(parseProgram(base), parseProgram(counterfactual))).toBe(error);
  });
});

describe('every edit of every program', () => {
  it('of a constant changes one token, and the answer exactly when it is the root', () => {
    for (const program of programs) {
      program.assignments.forEach((line, index) => {
        if (program.references[index] !== null) return;
        const digit = (Number(line.source) + 1) % 10;
        const edited = withConstant(program, index + 1, digit);
        expect([...differences(program, edited)]).toEqual([positionOf(program, 'rhs', index + 1)]);
        expect(edited.answer).toBe(index + 1 === program.rootLine ? digit : program.answer);
      });
    }
  });

  it('of names changes no value and no chain', () => {
    for (const program of programs) {
      const renamed = withNamesSwapped(program, program.query, freeNames(program)[0] ?? 'a');
      expect(renamed.query).not.toBe(program.query);
      expect([renamed.values, renamed.chain]).toEqual([program.values, program.chain]);
    }
  });

  it('of the query asks for what that variable holds', () => {
    for (const program of programs) {
      for (const name of namesBefore(program, program.nLines + 1)) {
        const last = program.assignments.map((line) => line.variable).lastIndexOf(name);
        expect(withQuery(program, name).answer).toBe(program.values[last]);
      }
    }
  });

  it('of a reference gives the line the value that the other variable holds there', () => {
    for (const program of programs) {
      for (const line of referenceLines(program)) {
        for (const name of namesBefore(program, line)) {
          const held = program.assignments.slice(0, line - 1).map((earlier) => earlier.variable).lastIndexOf(name);
          expect(withReference(program, line, name).values[line - 1]).toBe(program.values[held]);
        }
      }
    }
  });

  it('that the page offers is found again from the two programs, and can be patched', () => {
    for (const program of programs.filter((_, index) => index % 6 === 0)) {
      for (const kind of Object.keys(CHANGES) as Kind[]) {
        const all = changesOf(program, kind);
        for (const change of all) {
          const edited = withChange(program, change);
          expect(refusePair(program, edited)).toBeNull();
          const found = findChange(program, edited);
          expect(withChange(program, found).text).toBe(edited.text);
          expect(found.kind).not.toBe('free');
          if (kind !== 'names') expect(differences(program, edited).size).toBe(1);
        }
        const usual = usualChange(program, kind);
        const telling = all.filter((change) => withChange(program, change).answer !== program.answer);
        expect(usual).toEqual(telling[0] ?? all[0]);
      }
    }
  });

  it('is refused where the variable is not assigned before', () => {
    const program = parseProgram('a=5\nb=a\nc=3\n#b:');
    expect(refuse(() => withReference(program, 2, 'c')).message).toBe("line 2: 'c' is used before it is assigned.");
    expect(refuse(() => withQuery(program, 'z')).message).toBe("line 4: 'z' is queried but never assigned.");
  });
});

describe('dereferencing', () => {
  it('visits the query and then the chain, and ends with the answer', () => {
    for (const program of programs) {
      const steps = dereference(program);
      expect(steps.map((step) => step.line)).toEqual([program.nLines + 1, ...program.chain]);
      expect(steps.at(-1)?.sentence).toContain(`The answer is ${program.answer}`);
    }
  });
});

function refuse(attempt: () => unknown): ProgramError {
  try {
    attempt();
  } catch (problem) {
    if (problem instanceof ProgramError) return problem;
    throw problem;
  }
  throw new Error('nothing was refused');
}
