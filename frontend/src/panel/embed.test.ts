import { describe, expect, it } from 'vitest';
import { frameMarkup, panelToHtml, type Embedded } from './embed';
import { layOutFigure, partOf } from './figure';
import { stripsAround } from './readings';

const PANEL: Embedded = {
  title: 'What < moves',
  finding: 'Head 2 & head 3 bring it.',
  svg: '<svg width="10" height="10"><path d="M0 0"/></svg>',
  provenance: 'binding-laptop · step 3,700',
  command: 'bindscope moves binding-laptop',
  table: { name: 'effect', headers: ['layer', 'effect'], nHeaders: 1, rows: [[2, 0.5]], note: '' },
  paper: '#fff',
  ink: '#000',
};

describe('a panel as one file', () => {
  it('says title, finding, numbers and where they come from, and holds its drawing', () => {
    const html = panelToHtml(PANEL);
    for (const part of ['<h1>What &lt; moves</h1>', 'Head 2 &amp; head 3 bring it.', 'binding-laptop · step 3,700', '<code>bindscope moves binding-laptop</code>', '<th scope="row">2</th><td class="number">0.5000</td>', 'M0 0']) {
      expect(html).toContain(part);
    }
  });
  it('runs no script and fetches nothing', () => {
    const html = panelToHtml(PANEL);
    expect(html).toContain("default-src 'none'");
    expect(html).not.toMatch(/<script|https?:|src=|@import/);
  });
  it('shows the numbers at once where nothing is drawn, and leaves out what it has not', () => {
    const html = panelToHtml({ ...PANEL, svg: '', finding: '', command: '' });
    expect(html).toContain('<details open>');
    expect(html).not.toMatch(/<svg|<strong|<code/);
  });
});

describe('a panel in a frame', () => {
  it('is markup that keeps its address, whatever is in it', () => {
    const markup = frameMarkup('https://example.org/copy/', '#/1/patch?run=a&program=a=5;!a:', 'Say "so"', 420.4);
    expect(markup).toBe('<iframe src="https://example.org/copy/#/1/patch?run=a&amp;program=a=5;!a:" title="Say &quot;so&quot;" width="100%" height="420" style="border:0" loading="lazy"></iframe>');
  });
});

describe('a drawing that is pointed at', () => {
  const part = partOf('<svg width="200" height="50" viewBox="0 0 100 25"></svg>', '', 30, 0);
  const settings = { paper: '#ffffff', ink: '#000000' };
  const readings = () => stripsAround([10, 20, 60], { left: 0, right: 100, top: 5, bottom: 20 }, (index) => `value ${index}`);

  it('reads the nearest place', () => {
    expect(readings().map(({ x, width }) => [x, width])).toEqual([[0, 15], [15, 25], [40, 60]]); // prettier-ignore
  });
  it('says what stands there beside it, and within the figure', () => {
    if (!part) throw new Error('no drawing');
    expect(layOutFigure([{ ...part, readings }], settings).svg).not.toContain('value 1');
    const { svg, width } = layOutFigure([{ ...part, readings }], { ...settings, readings: true });
    const rects = [...svg.matchAll(/<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"/g)].map((found) => found.slice(1).map(Number));
    expect(rects[2]).toEqual([60, 10, 50]); // the second: twice as large as in the drawing's units, and 30 to the right
    for (const [x, , wide] of rects) expect((x ?? 0) + (wide ?? 0)).toBeLessThanOrEqual(width + 0.1);
    expect(svg).toMatch(/visibility="hidden"[^]*>value 1</);
  });
  it('says nothing where nothing can be read', () => {
    if (!part) throw new Error('no drawing');
    expect(layOutFigure([part], { ...settings, readings: true }).svg).toBe(layOutFigure([part], settings).svg);
  });
});
