import { describe, expect, it } from 'vitest';
import { parseProgram } from '../../program/program';
import { tellChain, tellUnlike } from './tell';

const program = parseProgram('a=5\nb=7\nc=b\nd=c\n#d:');

describe('sentences about a program', () => {
  it('name the chain from the query to its constant', () => {
    expect(tellChain(program)).toBe('d is 7: d (line 4) → c (line 3) → b (line 2), where 7 stands.');
    expect(tellChain(parseProgram('a=5\n#a:'))).toBe('a is 5: a (line 1), where 5 stands.');
  });
  it('say how it differs from those of training, and nothing where it does not', () => {
    expect(tellUnlike(program, { lines: 16, min_lines: 2, max_depth: 4, n_constants: 10 })).toBe('');
    expect(tellUnlike(program, { lines: 16, max_depth: 4 })).toContain('it has 4 lines where training had 16');
    expect(tellUnlike(program, { lines: 4, max_depth: 2 })).toContain('its chain is 3 deep where training went to 2');
    expect(tellUnlike(program, { lines: 4, max_depth: 3, n_constants: 6 })).toContain('digits 0 to 5');
  });
});
