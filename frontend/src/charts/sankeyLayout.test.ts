import { describe, expect, test } from 'vitest';
import { layOutSankey, ribbonPath, type Node } from './sankeyLayout';
import type { Flow } from './types';

const FLOWS: Flow[] = [
  { from: 'line 1', to: 'right', amount: 120 },
  { from: 'line 1', to: 'wrong', amount: 300 },
  { from: 'root', to: 'right', amount: 420 },
  { from: 'nothing', to: 'nowhere', amount: 0 },
  { from: 'other', to: 'wrong', amount: 7 },
  { from: 'line 1', to: 'right', amount: 3 },
];
const HEIGHT = 300;
const layout = layOutSankey(FLOWS, HEIGHT, 12);
const side = (name: Node['side']): Node[] => layout.nodes.filter((node) => node.side === name);
const thickness = ([top, bottom]: readonly [number, number]): number => bottom - top;

describe('ribbons', () => {
  test('carry everything that flows, as thick at the end as at the start', () => {
    expect(layout.total).toBe(850);
    expect(layout.ribbons.reduce((sum, ribbon) => sum + ribbon.amount, 0)).toBe(850);
    const scale = thickness(layout.ribbons[0]?.start ?? [0, 0]) / (layout.ribbons[0]?.amount ?? 1);
    for (const ribbon of layout.ribbons) {
      expect(thickness(ribbon.start)).toBeCloseTo(ribbon.amount * scale, 9);
      expect(thickness(ribbon.end)).toBeCloseTo(ribbon.amount * scale, 9);
    }
  });

  test('fill each node exactly and without overlap', () => {
    for (const node of layout.nodes) {
      const parts = layout.ribbons
        .filter((ribbon) => ribbon[node.side] === node.name)
        .map((ribbon) => (node.side === 'from' ? ribbon.start : ribbon.end))
        .sort((one, other) => one[0] - other[0]);
      expect(parts[0]?.[0]).toBeCloseTo(node.top, 9);
      expect(parts[parts.length - 1]?.[1]).toBeCloseTo(node.bottom, 9);
      parts.slice(1).forEach((part, index) => expect(part[0]).toBeCloseTo(parts[index]?.[1] ?? 0, 9));
    }
  });

  test('that carry nothing are left out, and repeated ones are joined', () => {
    expect(layout.nodes.map((node) => node.name)).not.toContain('nothing');
    expect(layout.ribbons.filter((ribbon) => ribbon.from === 'line 1' && ribbon.to === 'right').map((ribbon) => ribbon.amount)).toEqual([123]);
    expect(layout.ribbons).toHaveLength(4);
  });

  test('fractions of a start sum to one', () => {
    const fractions = layout.ribbons.filter((ribbon) => ribbon.from === 'line 1').map((ribbon) => ribbon.fractionOfFrom);
    expect(fractions.reduce((sum, fraction) => sum + fraction, 0)).toBeCloseTo(1, 12);
  });

  test('are drawn from their start to their end', () => {
    const ribbon = layout.ribbons[1];
    const path = ribbon ? ribbonPath(ribbon, 10, 90) : '';
    expect(path.startsWith(`M10 ${ribbon?.start[0]}`)).toBe(true);
    expect(path).toContain(`90 ${ribbon?.end[0]}V${ribbon?.end[1]}`);
  });
});

describe('nodes', () => {
  test('stand in the given order, whichever flow comes first', () => {
    const flows = [{ from: 'line 1', to: 'none', amount: 1 }, { from: 'line 2', to: 'line 1', amount: 2 }]; // prettier-ignore
    const { nodes } = layOutSankey(flows, 100, 4, ['line 1', 'line 2', 'none']);
    expect(nodes.filter((node) => node.side === 'to').map((node) => node.name)).toEqual(['line 1', 'none']);
  });
  test('keep the order in which they first appear', () => {
    expect(side('from').map((node) => node.name)).toEqual(['line 1', 'root', 'other']);
    expect(side('to').map((node) => node.name)).toEqual(['right', 'wrong']);
  });

  test.each(['from', 'to'] as const)('of the column "%s" share everything, stay inside and do not overlap', (column) => {
    const nodes = side(column);
    expect(nodes.reduce((sum, node) => sum + node.fraction, 0)).toBeCloseTo(1, 12);
    expect(nodes[0]?.top).toBeGreaterThanOrEqual(-1e-9);
    expect(nodes[nodes.length - 1]?.bottom).toBeLessThanOrEqual(HEIGHT + 1e-9);
    nodes.slice(1).forEach((node, index) => expect(node.top).toBeGreaterThan(nodes[index]?.bottom ?? 0));
  });

  test('many of them still fit', () => {
    const many = layOutSankey(Array.from({ length: 40 }, (_, index) => ({ from: `${index}`, to: 'one', amount: 1 })), 200, 12);
    const bottoms = many.nodes.map((node) => node.bottom);
    expect(Math.min(...many.nodes.map((node) => node.top))).toBeGreaterThanOrEqual(-1e-9);
    expect(Math.max(...bottoms)).toBeLessThanOrEqual(200 + 1e-9);
  });

  test('nothing flowing is nothing drawn', () => {
    expect(layOutSankey([{ from: 'a', to: 'b', amount: 0 }], 100, 8)).toEqual({ nodes: [], ribbons: [], total: 0 });
  });
});
