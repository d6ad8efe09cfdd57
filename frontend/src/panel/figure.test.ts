import { describe, expect, it } from 'vitest';
import { layOutFigure, partOf, PIXELS_PER_MM, rowsOf, type Part } from './figure';
import { wrap } from './wrap';

const drawn = (left: number, top: number, subtitle = '', width = 100, height = 50): Part => {
  const part = partOf(`<svg xmlns="x" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><text font-size="9px">t</text></svg>`, subtitle, left, top);
  if (!part) throw new Error('no drawing');
  return part;
};
const LIGHT = { paper: '#ffffff', ink: '#000000' };
const places = (svg: string): number[][] => [...svg.matchAll(/<svg x="([\d.]+)" y="([\d.]+)"/g)].map(([, x, y]) => [Number(x), Number(y)]);

describe('a figure of several drawings', () => {
  it('keeps drawings side by side where the page has them so, and the next row below', () => {
    const [left, right, below] = [drawn(0, 10), drawn(120, 14), drawn(0, 90)];
    expect(rowsOf([below, right, left])).toEqual([[left, right], [below]]);
    const { svg, width } = layOutFigure([below, right, left], LIGHT);
    expect(width).toBe(220);
    const [first, second, third] = places(svg);
    expect([first?.[0], second?.[0], third?.[0]]).toEqual([0, 120, 0]);
    expect(first?.[1]).toBe(second?.[1]);
    expect(third?.[1]).toBeGreaterThanOrEqual((first?.[1] ?? 0) + 50);
  });
  it('has letters and subtitles in reading order', () => {
    const { svg } = layOutFigure([drawn(0, 90, 'depth 3'), drawn(120, 0, 'depth 2 & more'), drawn(0, 0, 'depth 1')], { ...LIGHT, letters: true });
    expect([...svg.matchAll(/>([^<>]+)<\/text>/g)].map(([, text]) => text).filter((text) => text !== 't')).toEqual(['a', 'depth 1', 'b', 'depth 2 &amp; more', 'c', 'depth 3']);
    expect(layOutFigure([drawn(0, 0)], { ...LIGHT, letters: true }).svg).not.toContain('>a</text>'); // one part needs none
  });
  it('is as wide on paper as was asked, with title, finding and footer', () => {
    const { svg, width, height } = layOutFigure([drawn(0, 0, '', 200)], { ...LIGHT, mm: 85, width: 85 * PIXELS_PER_MM, title: 'What < moves', finding: 'It does.', footer: 'run · step 3' });
    expect(svg).toMatch(/^<svg [^>]*width="85mm" height="[\d.]+mm"/);
    expect(Number(/height="([\d.]+)mm"/.exec(svg)?.[1])).toBeCloseTo(height / PIXELS_PER_MM, 1);
    expect(width).toBeCloseTo(85 * PIXELS_PER_MM);
    for (const text of ['What &lt; moves', 'It does.', 'run · step 3']) expect(svg).toContain(`>${text}</text>`);
  });
  it('knows its smallest letters on paper: eight pixels are six points, and less where a drawing must shrink', () => {
    const wide = 85 * PIXELS_PER_MM;
    expect(layOutFigure([drawn(0, 0, '', wide)], { ...LIGHT, mm: 85, width: wide, footer: 'f' }).smallest).toBeCloseTo(0.75 * 8.2);
    expect(layOutFigure([drawn(0, 0, '', wide)], { ...LIGHT, mm: 85, width: wide }).smallest).toBeCloseTo(0.75 * 9);
    expect(layOutFigure([drawn(0, 0, '', 2 * wide)], { ...LIGHT, mm: 85, width: wide }).smallest).toBeCloseTo(0.75 * 4.5);
    const shrunk = partOf('<svg width="100" height="50" viewBox="0 0 200 100"><text font-size="10px">t</text></svg>', '', 0, 0);
    expect(shrunk && layOutFigure([shrunk], LIGHT).smallest).toBeCloseTo(0.75 * 5);
  });
  it('breaks long lines between words', () => {
    const lines = wrap('one sentence of finding that is longer than a column is wide', 120, 10);
    expect(lines.join(' ')).toBe('one sentence of finding that is longer than a column is wide');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(24);
    expect(lines.length).toBeGreaterThan(2);
  });
});
