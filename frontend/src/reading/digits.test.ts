import { describe, expect, it } from 'vitest';
import type { Body } from '../api/body';
import { digitBars, percent, topOf } from './digits';

const OUTPUTS = [...'0123456789', 'a'];
const body: Body = {
  title: '', attrs: {}, command: '', python: '', provenance: { run: '', step: null, n: 1, seed: null, interval: '', note: '' },
  sizes: { output: OUTPUTS.length },
  coords: { output: { dims: ['output'], values: OUTPUTS, units: '' } },
  variables: { probability: { dims: ['output'], values: OUTPUTS.map((output) => (output === '8' ? 0.9 : 0.01)), units: 'fraction' } },
}; // prettier-ignore

describe('a distribution over outputs', () => {
  it('is a bar for each digit and one for the rest, all together one', () => {
    const bars = digitBars(body, {}, []);
    expect(bars).toHaveLength(11);
    expect(bars.reduce((sum, bar) => sum + (bar.value ?? 0), 0)).toBeCloseTo(1, 10);
    expect(bars.at(-1)).toMatchObject({ label: 'no digit', value: 0.01 });
  });
  it('has the colours of the roles, whichever digits play them', () => {
    for (const [first, second] of [['8', '5'], ['5', '8']] as const) {
      const bars = digitBars(body, {}, [[first, 'source'], [second, 'base']]); // prettier-ignore
      expect(bars[Number(first)]).toMatchObject({ label: `${first} (source)`, colour: 'var(--systematic)' });
      expect(bars[Number(second)]).toMatchObject({ label: `${second} (base)`, colour: 'var(--heuristic)' });
    }
    expect(digitBars(body, {}, [['5', 'answer'], ['5', 'line 1']])[5]?.label).toBe('5 (answer, line 1)'); // prettier-ignore
  });
  it('has one output on top', () => {
    expect(topOf(body, {})).toEqual({ output: '8', fraction: 0.9 });
    expect([percent(0.93), percent(0.997), percent(0)]).toEqual(['93 %', '99.7 %', '0 %']);
  });
});
