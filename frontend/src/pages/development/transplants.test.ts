import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { leftBars, wayBars } from './transplants';

const labelled = (dims: string[], values: (number | null)[]) => ({ dims, values, units: null });
const coordinate = (name: string, values: (number | string)[]) => ({ dims: [name], values, units: null });
const made = (sizes: Record<string, number>, coords: Record<string, (number | string)[]>, variables: Record<string, ReturnType<typeof labelled>>): Body =>
  ({ title: 'made', sizes, variables, coords: Object.fromEntries(Object.entries(coords).map(([name, values]) => [name, coordinate(name, values)])) }) as unknown as Body;

describe('transplants', () => {
  const dims = ['donor', 'direction', 'part'];
  const body = made(
    { donor: 1, direction: 2, part: 2, draw: 2 },
    { donor: [1000], direction: ['reproduce', 'undo'], part: ['L0', 'MLP'] },
    {
      total_fraction: labelled(dims, [0.5, 0.1, 0.9, 0.2]), total_fraction_low: labelled(dims, [0.4, 0, 0.8, 0.1]),
      total_fraction_high: labelled(dims, [0.6, 0.2, 1, 0.3]), random_fraction: labelled(['donor', 'part', 'draw'], [0.1, 0.2, -0.1, 0]),
    },
  ); // prettier-ignore

  it('stand beside the largest change at random, on the way there only', () => {
    expect(wayBars(body, '1000', 'reproduce').map(({ label, value, low, high, reference }) => [label, value, low, high, reference])).toEqual([
      ['L0', 0.5, 0.4, 0.6, 0.2],
      ['MLP', 0.1, 0, 0.2, 0],
    ]);
    expect(wayBars(body, '1000', 'undo').map(({ value, reference }) => [value, reference])).toEqual([[0.9, undefined], [0.2, undefined]]); // prettier-ignore
  });

  it('count a cell that never left as the most steps, beside the mean without any part', () => {
    const cells = made(
      { part: 1, condition: 2, seed: 2 },
      { part: ['L0'], condition: ['trained', 'held'], seed: [0, 1] },
      { left: labelled(['part', 'condition', 'seed'], [40, 60, 100, null]), baseline_left: labelled(['seed'], [180, 190]) },
    );
    expect(leftBars(cells, 'trained', 300)[0]).toMatchObject({ value: 50, low: 40, high: 60, reference: 185 });
    expect(leftBars(cells, 'held', 300)[0]).toMatchObject({ value: 200, low: 100, high: 300 });
  });
});
