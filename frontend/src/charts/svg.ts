/** A drawing on the page as the text of an SVG file that looks the same without the page's styles. */

export interface LegendEntry {
  name: string;
  colour: string;
  path: string; // a mark around (0, 0)
}

const INHERITED = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'font-family', 'font-size', 'font-weight',
  'text-anchor', 'paint-order', 'visibility',
]; // prettier-ignore
const OWN = { opacity: '1', display: 'inline' }; // with what they usually are

/** `under` is markup below everything, such as cells that the page paints on a canvas; a legend is written below the drawing. */
export function svgText(drawing: SVGSVGElement | undefined, under = '', legend: LegendEntry[] = []): string {
  if (!drawing) return '';
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  keepStyles(drawing, copy);
  copy.setAttribute('overflow', 'visible');
  copy.querySelectorAll('[data-passing]').forEach((element) => element.remove()); // what follows the pointer
  const [width, height] = [drawing.clientWidth, drawing.clientHeight];
  const written = legendMarkup(legend, width, height, drawing);
  const whole = height + written.height;
  const paper = background(drawing);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${whole}" viewBox="0 0 ${width} ${whole}">`,
    `<title>${escapeXml(drawing.getAttribute('aria-label') ?? drawing.dataset.label ?? '')}</title>`,
    `<rect width="${width}" height="${whole}" fill="${paper}"/>`,
    under,
    new XMLSerializer().serializeToString(copy),
    written.markup,
    '</svg>',
  ].join('\n');
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function keepStyles(shown: Element, copy: Element, inherited = false): void {
  const style = getComputedStyle(shown);
  const above = inherited && shown.parentElement ? getComputedStyle(shown.parentElement) : null;
  for (const name of INHERITED) {
    const value = style.getPropertyValue(name);
    if (value !== above?.getPropertyValue(name)) copy.setAttribute(name, value);
    else copy.removeAttribute(name);
  }
  for (const [name, usual] of Object.entries(OWN)) {
    if (inherited && style.getPropertyValue(name) !== usual) copy.setAttribute(name, style.getPropertyValue(name));
  }
  nameOption(copy);
  for (const name of ['class', 'style', 'tabindex', 'role']) copy.removeAttribute(name);
  for (const { name } of [...copy.attributes]) if (name.startsWith('aria-')) copy.removeAttribute(name);
  [...shown.children].forEach((child, index) => {
    const other = copy.children[index];
    if (other) keepStyles(child, other, true);
  });
}

/** What can be chosen in a diagram says what it is when it is pointed at. */
function nameOption(copy: Element): void {
  const name = copy.getAttribute('role') === 'option' ? copy.getAttribute('aria-label') : null;
  if (!name) return;
  const title = document.createElementNS('http://www.w3.org/2000/svg', 'title');
  title.textContent = name;
  copy.append(title); // after its shapes, so that these stay as they were counted
}

function background(element: Element | null): string {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour && colour !== 'transparent' && !/, 0\)$|\/ 0\)$/.test(colour)) return colour;
  }
  return 'white';
}

/** A colour that may be a name of the page's, as it is where the drawing stands. */
function resolved(colour: string, drawing: Element): string {
  if (!colour.startsWith('var(')) return colour;
  const probe = drawing.ownerDocument.createElementNS('http://www.w3.org/2000/svg', 'g');
  probe.style.setProperty('color', colour); // a style set by a script, which the page's policy allows
  drawing.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function legendMarkup(legend: LegendEntry[], width: number, top: number, drawing: Element): { markup: string; height: number } {
  const ink = getComputedStyle(drawing).color;
  const [line, character] = [18, 7];
  let [x, y] = [10, top + 14];
  const parts = legend.map(({ name, colour, path }) => {
    const needed = 24 + name.length * character;
    if (x > 10 && x + needed > width) [x, y] = [10, y + line];
    const fill = resolved(colour, drawing);
    const part =
      `<path d="${path}" transform="translate(${x + 5},${y - 4})" fill="${fill}" stroke="${fill}"/>` +
      `<text x="${x + 16}" y="${y}" font-family="system-ui, sans-serif" font-size="12" fill="${ink}">${escapeXml(name)}</text>`;
    x += needed;
    return part;
  });
  return { markup: parts.join('\n'), height: legend.length ? y - top + 10 : 0 };
}
