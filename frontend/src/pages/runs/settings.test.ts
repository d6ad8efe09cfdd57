import { describe, expect, it } from 'vitest';
import { compare, flatten, showCount, showSize, showValue } from './settings';

const tiny = { name: 'tiny', seed: 0, task: { lines: 6, names: ['a', 'b'] }, training: { optimizer: { lr: 0.001 }, clip: null } };

describe('settings', () => {
  it('are named as --set names them', () => {
    expect(Object.fromEntries(flatten(tiny))).toEqual({
      name: 'tiny', seed: '0', 'task.lines': '6', 'task.names': 'a, b', 'training.optimizer.lr': '0.001', 'training.clip': 'none',
    }); // prettier-ignore
  });

  it('differ from nothing when there is no other run, and from nothing in a copy', () => {
    expect(compare(tiny, null).some((setting) => setting.differs)).toBe(false);
    expect(compare(tiny, structuredClone(tiny)).some((setting) => setting.differs)).toBe(false);
  });

  it('differ where a value does and where only one run has them, either way round', () => {
    const other = { ...tiny, seed: 1, task: { lines: 6 }, more: true };
    const names = (settings: ReturnType<typeof compare>): string[] => settings.filter((s) => s.differs).map((s) => s.name);
    expect(names(compare(tiny, other))).toEqual(['seed', 'task.names', 'more']);
    expect(names(compare(other, tiny)).sort()).toEqual(names(compare(tiny, other)).sort());
    expect(compare(tiny, other).find((setting) => setting.name === 'more')).toEqual({ name: 'more', value: undefined, other: 'true', differs: true });
  });

  it('show empty lists and objects as something', () => {
    expect([showValue([]), showValue({}), showValue(false), showValue(undefined)]).toEqual(['()', '{}', 'false', 'none']);
  });
});

describe('amounts', () => {
  it('are short', () => {
    expect([999, 4700, 255208, 1300000, 37800000].map(showCount)).toEqual(['999', '4.7k', '255k', '1.3M', '38M']);
    expect([13458016, 2_500_000_000, 900].map(showSize)).toEqual(['13.5 MB', '2.5 GB', '0.9 kB']);
  });
});
