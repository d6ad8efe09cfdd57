import { describe, expect, test } from 'vitest';
import { cellAt, fitsInCell, layOutHeatmap } from './heatmapLayout';
import { roomier } from './room.svelte';
import { cellsToSvg } from './heatmapPaint';

const numbered = (count: number, word = ''): string[] => Array.from({ length: count }, (_, index) => `${word}${index}`);

describe('a heatmap', () => {
  test.each([320, 360, 1280, 3800])('%i pixels wide keeps its cells inside', (width) => {
    for (const columns of [1, 7, 67, 400]) {
      const layout = layOutHeatmap({ width, rows: numbered(80, 'program number '), columns: numbered(columns), rowTitle: 'program' });
      expect(layout.left + layout.cellWidth * columns).toBeLessThanOrEqual(width + 1e-9);
      expect(layout.cellWidth).toBeGreaterThan(0);
      expect(layout.height).toBeGreaterThan(layout.top + layout.cellHeight * 80);
    }
  });

  test('on a phone cells that can be chosen have a least width, and the drawing is wider than its place', () => {
    const layout = layOutHeatmap({ width: 360, rows: numbered(5, 'L'), columns: numbered(67), least: 14 });
    expect(layout.cellWidth).toBe(14);
    expect(layout.width).toBeGreaterThan(67 * 14);
    expect(layout.room).toBe(360);
    expect(layOutHeatmap({ width: 360, rows: ['a'], columns: numbered(400), least: 14 }).width).toBe(360); // too many to scroll through
    expect(layOutHeatmap({ width: 1200, rows: ['a'], columns: numbered(67), least: 14 }).width).toBe(1200);
  });

  test('a panel that fills the window gives its charts the height', () => {
    expect(roomier(280, 900, 1)).toBe(620);
    expect(roomier(280, 900, 4)).toBe(310);
    expect(roomier(280, 500, 1)).toBe(280);
  });

  test('square cells are square and no higher than asked', () => {
    const layout = layOutHeatmap({ width: 1200, rows: numbered(67), columns: numbered(67), square: true, height: 500 });
    expect(layout.cellHeight).toBe(layout.cellWidth);
    expect(layout.cellHeight * 67).toBeCloseTo(500, 9);
  });

  test('plain is nothing but cells', () => {
    const layout = layOutHeatmap({ width: 134, rows: numbered(67), columns: numbered(67), square: true, plain: true, rowTitle: 'query' });
    expect([layout.left, layout.top, layout.shownRows, layout.shownColumns]).toEqual([0, 0, [], []]);
    expect([layout.width, layout.height]).toEqual([134, 134]);
  });

  test('tokens and numbers stay upright, words that do not fit run upwards', () => {
    const shape = { width: 360, rows: ['a'] };
    expect(layOutHeatmap({ ...shape, columns: [...'a=5\n#b:'] }).rotated).toBe(false);
    expect(layOutHeatmap({ ...shape, columns: numbered(400) }).rotated).toBe(false);
    const mixed = layOutHeatmap({ ...shape, columns: [...numbered(10), 'no digit'] });
    expect(mixed.rotated).toBe(true);
    expect(['7', 'no digit'].map((label) => fitsInCell(mixed, label))).toEqual([true, false]);
  });

  test('labels shrink to be all written, and are of full size where some are left out', () => {
    const shape = (count: number) => layOutHeatmap({ width: 900, rows: numbered(count), columns: numbered(3), height: 600 });
    expect([shape(60).shownRows.length, shape(60).rowSize]).toEqual([60, 9]);
    expect(shape(300).rowSize).toBe(11);
    expect(shape(300).shownRows.length).toBeLessThanOrEqual(600 / 13 + 1);
  });

  test('the cell under a place is the one drawn there', () => {
    const layout = layOutHeatmap({ width: 500, rows: numbered(5), columns: numbered(9) });
    for (const [row, column] of [[0, 0], [4, 8], [2, 3]] as const) { // prettier-ignore
      const [x, y] = [(column + 0.5) * layout.cellWidth, (row + 0.5) * layout.cellHeight];
      expect(cellAt(layout, x, y, 5, 9)).toEqual({ row, column });
    }
    expect(cellAt(layout, -1, 3, 5, 9)).toBeNull();
    expect(cellAt(layout, 3, layout.cellHeight * 5 + 1, 5, 9)).toBeNull();
  });
});

describe('its cells as SVG', () => {
  const layout = layOutHeatmap({ width: 300, rows: numbered(2), columns: numbered(3) });
  const cells = { rows: 2, columns: 3, values: [0, 1, null, 0, 0.5, 1], scale: 'sequential', limits: [0, 1], mask: false } as const;

  test('are all there, those of one colour in one path', () => {
    const drawn = cellsToSvg(cells, layout, 'black');
    expect(drawn.match(/<path fill=/g)).toHaveLength(4); // three values and what is missing
    expect(drawn.match(/M[\d.]+ [\d.]+h/g)).toHaveLength(6);
    expect(drawn).toContain('fill="url(#missing)"');
  });

  test('leave what is missing blank when asked to', () => {
    expect(cellsToSvg({ ...cells, mask: true }, layout, 'black').match(/M[\d.]+ [\d.]+h/g)).toHaveLength(5);
  });
});
