import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { tellPatch, tellValue } from './metrics';

const OUTPUTS = [...'0123456789', 'a'];

/** A patched pair whose base answer is 5 and source answer 8, with these outputs on top. */
function patched(tops: { base: string; source: string; patched: string }): Body {
  const values = Object.values(tops).flatMap((top) => OUTPUTS.map((output) => (output === top ? 0.9 : 0.01)));
  return {
    title: '',
    sizes: { step: 1, condition: 3, output: OUTPUTS.length },
    coords: {
      step: { dims: ['step'], values: [3700], units: '' },
      condition: { dims: ['condition'], values: Object.keys(tops), units: '' },
      output: { dims: ['output'], values: OUTPUTS, units: '' },
    },
    variables: { probability: { dims: ['step', 'condition', 'output'], values, units: 'fraction' } },
    attrs: { base_answer: '5', source_answer: '8' },
    provenance: { run: '', step: null, n: null, seed: null, interval: '', note: '' },
    command: '',
    python: '',
  };
}

describe('what a patch did', () => {
  it('is told by whose answer is on top', () => {
    expect(tellPatch(patched({ base: '5', source: '8', patched: '8' }), 3700, 'noising')).toBe('The counterfactual’s 8 is now the top answer (90 %).');
    expect(tellPatch(patched({ base: '5', source: '8', patched: '8' }), 3700, 'denoising')).toBe('The program’s 8 is now the top answer (90 %).');
    expect(tellPatch(patched({ base: '5', source: '8', patched: '5' }), 3700, 'noising')).toContain('own 5 stays');
    expect(tellPatch(patched({ base: '8', source: '8', patched: '8' }), 3700, 'noising')).toContain('before the patch');
    expect(tellPatch(patched({ base: '5', source: '8', patched: '3' }), 3700, 'noising')).toContain('neither the program’s 5 nor the counterfactual’s 8');
  });
  it('says when there is no value', () => {
    expect(tellValue('success', null)).toBe('no value');
    expect(tellValue('kl', 1.5)).toBe('1.5 nats');
  });
});
