import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { lastOnTop } from '../../reading/layers';
import { layerNames, readLens, tellCell } from './reading';

const over = (dims: string[], values: (string | number)[]) => ({ dims, values, units: '' });
const both = ['layer', 'position'];
const body: Body = {
  title: '',
  sizes: { layer: 2, position: 2 },
  coords: { layer: over(['layer'], [0, 1]), position: over(['position'], [0, 1]), token: over(['position'], ['a', ':']) },
  variables: {
    answer: over(both, [0.1, 0.2, 0.3, 0.9]),
    line_1: over(both, [0.5, 0.4, 0.3, 0.05]),
    answer_logit: over(both, [1, 2, 3, 4]),
    line_1_logit: over(both, [4, 2, 1, -2]),
    top: over(both, ['7', '\\n', '7', '5']),
    top_probability: over(both, [0.5, 0.6, 0.7, 0.9]),
    entropy: over(both, [5, 4, 3, 0.25]),
  },
  attrs: {},
  provenance: { run: '', step: 0, n: 1, seed: null, interval: '', note: '' },
  command: '',
  python: '',
};

describe('the lens of one program', () => {
  it('shows the margin as the difference of logits, around zero', () => {
    const { values, limits, scale } = readLens(body, 'margin');
    expect(values).toEqual([-3, 0, 2, 6]);
    expect(limits[0]).toBe(-limits[1]);
    expect(scale).toBe('diverging');
  });

  it('shows fractions between 0 and 1 and entropy up to that of forty equal outputs', () => {
    expect(readLens(body, 'answer')).toMatchObject({ values: [0.1, 0.2, 0.3, 0.9], limits: [0, 1] });
    expect(readLens(body, 'top').values).toEqual([0.5, 0.6, 0.7, 0.9]);
    expect(2 ** readLens(body, 'entropy').limits[1]).toBeCloseTo(40);
  });

  it('is drawn with the last layer on top', () => {
    expect(lastOnTop(readLens(body, 'answer').values, 2)).toEqual([0.3, 0.9, 0.1, 0.2]);
  });

  it('names layers by what the residual stream has just left, and tells a cell in words', () => {
    expect(layerNames(body)).toEqual(['embedding', 'after L0']);
    expect(tellCell(body, 1, 1)).toBe("likeliest '5' 90 %; answer 90 %, line 1 5 %; 0.25 bits");
  });
});
