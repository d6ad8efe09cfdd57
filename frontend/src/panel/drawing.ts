/** How a panel gets the picture of what it shows.

A chart made of SVG elements needs to do nothing. A chart drawn on a canvas calls `provideDrawing(() => svgText)` while it starts,
and the panel downloads that instead. */
import { getContext, onDestroy, setContext } from 'svelte';

const KEY = 'panel drawing';
type Give = () => string;

/** For a chart: give its picture as the text of one SVG with width and height. Does nothing outside of a panel. */
export function provideDrawing(give: Give): void {
  const given = getContext<Set<Give> | undefined>(KEY);
  if (!given) return;
  given.add(give);
  onDestroy(() => given.delete(give));
}

/** For the panel: what its charts gave. */
export function collectDrawings(): ReadonlySet<Give> {
  return setContext(KEY, new Set<Give>());
}

/** The picture of a panel as the text of one SVG, drawings below each other; null when there is none. */
export function drawingOf(element: Element, given: ReadonlySet<Give>): string | null {
  const texts = given.size ? [...given].map((give) => give()) : drawnIn(element).map(serialise);
  const parsed = texts.map((text) => new DOMParser().parseFromString(text, 'image/svg+xml').documentElement);
  const drawings = parsed.filter((root) => root.localName === 'svg');
  if (!drawings.length) return null;
  const style = getComputedStyle(element);
  return stack(drawings, { paper: getComputedStyle(document.documentElement).getPropertyValue('--panel').trim(), ink: style.color });
}

/** Draw the picture into a PNG, `scale` pixels to a unit. */
export async function drawingToPng(svg: string, scale = 2): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(image.naturalWidth * scale);
  canvas.height = Math.ceil(image.naturalHeight * scale);
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture is too large for this browser'))));
  });
}

function drawnIn(element: Element): SVGSVGElement[] {
  return [...element.querySelectorAll('svg')].filter((svg) => svg.getBoundingClientRect().width >= 40 && !svg.parentElement?.closest('svg, button'));
}

/** What of the look of an element is written into the file. */
const STYLES = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linecap', 'stroke-linejoin', 'opacity',
  'font-family', 'font-size', 'font-weight', 'font-style', 'text-anchor', 'dominant-baseline', 'visibility', 'display', 'paint-order',
]; // prettier-ignore

function serialise(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const [from, to] = [svg, copy].map((root) => [root, ...root.querySelectorAll('*')]) as [Element[], Element[]];
  from.forEach((original, index) => {
    const target = to[index] as SVGElement | undefined;
    if (!target?.style) return;
    const look = getComputedStyle(original);
    for (const name of STYLES) target.style.setProperty(name, look.getPropertyValue(name));
    target.removeAttribute('class');
  });
  const { width, height } = svg.getBoundingClientRect();
  if (!copy.hasAttribute('viewBox')) copy.setAttribute('viewBox', `0 0 ${width} ${height}`);
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  copy.setAttribute('xmlns', NAMESPACE);
  return new XMLSerializer().serializeToString(copy);
}

const NAMESPACE = 'http://www.w3.org/2000/svg';
const MARGIN = 12;

function stack(drawings: Element[], colours: { paper: string; ink: string }): string {
  const size = (root: Element, name: string): number => Number.parseFloat(root.getAttribute(name) ?? '') || 300;
  const width = Math.max(...drawings.map((root) => size(root, 'width'))) + 2 * MARGIN;
  let y = MARGIN;
  const placed = drawings.map((root) => {
    root.setAttribute('x', String(MARGIN));
    root.setAttribute('y', String(y));
    y += size(root, 'height') + MARGIN;
    return new XMLSerializer().serializeToString(root);
  });
  return (
    `<svg xmlns="${NAMESPACE}" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" color="${colours.ink}">` +
    `<rect width="100%" height="100%" fill="${colours.paper}"/>${placed.join('')}</svg>`
  );
}
