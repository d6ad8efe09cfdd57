import { describe, expect, it } from 'vitest';
import type { Body, Value } from '../../api/body';
import { pathOf, readingsAt, stepsOf, tellAlgorithms, tellReading } from './algorithm';

const labelled = (dim: string, values: Value[]) => ({ dims: [dim], values, units: '' });

/** Two checkpoints: at the first nothing is learned, at the second the colon takes the query's name and fetches the value. */
const body: Body = {
  title: 'How a chain is followed',
  sizes: { reading: 2, arrow: 2, hop: 1 },
  coords: {
    reading_step: labelled('reading', [0, 100]),
    reading_depth: labelled('reading', [1, 1]),
    algorithm: labelled('reading', ['undecided', 'pointer-backward']),
    arrow_step: labelled('arrow', [100, 100]),
    arrow_depth: labelled('arrow', [1, 1]),
    what: labelled('arrow', ['pointer', 'value']),
    source: labelled('arrow', ['query', 'rhs 1']),
    targets: labelled('arrow', ['colon', 'query + colon']),
    first_layer: labelled('arrow', [0, 2]),
    last_layer: labelled('arrow', [0, 3]),
    hop_step: labelled('hop', [100]),
    hop_depth: labelled('hop', [1]),
    reference: labelled('hop', ['query']),
    way: labelled('hop', ['pointer']),
  },
  variables: {
    accuracy: labelled('reading', [0.1, 1]),
    strength: labelled('arrow', [1, 0.75]),
    by_value: labelled('hop', [0]),
    by_pointer: labelled('hop', [0.9]),
    by_both: labelled('hop', [0.1]),
    by_jointly: labelled('hop', [0]),
    by_none: labelled('hop', [0]),
  },
  attrs: { n_layers: 4 },
  provenance: { run: '', step: null, n: null, seed: null, interval: '', note: '' },
  command: '',
  python: '',
};

describe('how a chain is followed', () => {
  it('is read at each checkpoint with its own arrows and hops', () => {
    expect(stepsOf(body)).toEqual([0, 100]);
    const [early] = readingsAt(body, 0);
    expect(early).toMatchObject({ algorithm: 'undecided', arrows: [], hops: [] });
    const [late] = readingsAt(body, 100);
    expect(late?.arrows.map(({ what, targets }) => [what, targets])).toEqual([
      ['pointer', ['colon']],
      ['value', ['query', 'colon']],
    ]);
    expect(late?.hops).toEqual([{ reference: 'query', way: 'pointer', text: 'pointer 90 %, both 10 %' }]);
  });

  it('is told in words for who does not see it', () => {
    const [late] = readingsAt(body, 100);
    expect(late && tellReading(late)).toBe(
      'Depth 1, pointer-backward: query to colon as pointer in layer 0; rhs 1 to query and colon as value in layer 3.',
    );
  });

  it('stands on an example of that depth', () => {
    expect(pathOf(2).map(({ text }) => text)).toEqual(['a=5', 'b=a', '#b', ':']);
  });
});

it('depths of one algorithm are told together', () => {
  const [one] = readingsAt(body, 100);
  const at = (depth: number, algorithm: string) => ({ ...one!, depth, algorithm });
  expect(tellAlgorithms([at(1, 'value-forward'), at(2, 'value-forward'), at(3, 'undecided')])).toBe('Depths 1 and 2: value-forward; depth 3: undecided.');
  expect(tellAlgorithms([])).toBe('');
});
