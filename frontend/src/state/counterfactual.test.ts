import { describe, expect, it } from 'vitest';
import { differences, firstConstant, rootOf, usualCounterfactual } from './counterfactual';

describe('the usual counterfactual', () => {
  it('changes the constant at the root of the queried chain and nothing else', () => {
    expect(usualCounterfactual('a=5\nc=2\nb=a\n#b:')).toBe('a=6\nc=2\nb=a\n#b:');
    expect(usualCounterfactual('a=9\n#a:')).toBe('a=0\n#a:');
  });
  it('takes the latest assignment before the line that reads it', () => {
    expect(usualCounterfactual('a=1\nb=a\na=7\n#b:')).toBe('a=2\nb=a\na=7\n#b:');
    expect(usualCounterfactual('a=1\nb=a\na=7\n#a:')).toBe('a=1\nb=a\na=8\n#a:');
  });
  it('is empty where the query leads to no constant', () => {
    for (const text of ['', '#a:', 'a=b\n#a:', 'a=a\n#a:', 'a=5\nb=a', 'a=5\n#?:', 'a=12\n#a:']) expect(usualCounterfactual(text)).toBe('');
  });
});

describe('differences', () => {
  it('are the places where texts of equal length differ', () => {
    expect(differences('a=5\n#a:', 'a=6\n#a:')).toEqual(new Set([2]));
    expect(differences('same', 'same')).toEqual(new Set());
    expect(differences('a', 'ab')).toBeNull();
  });
});

describe('readings of a program', () => {
  it('find the line that answers the query', () => {
    expect(rootOf('c=2\na=5\nb=a\n#b:')).toEqual({ line: 1, name: 'a', constant: 5 });
    expect(rootOf('a=b\n#a:')).toBeNull();
  });
  it('find the constant of the first line', () => {
    expect(firstConstant('c=2\na=5\n#a:')).toBe(2);
    expect(firstConstant('c=d\na=5')).toBeNull();
    expect(firstConstant('c=25')).toBeNull();
  });
});
