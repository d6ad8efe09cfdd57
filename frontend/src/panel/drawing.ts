/** How a panel gets the picture of what it shows.

A chart made of SVG elements needs to do nothing. A chart drawn on a canvas, or with a legend beside it, calls
`provideDrawing(() => svgText, () => element)` while it starts, and the panel takes that instead. A third function says what stands where. */
import { getContext, onDestroy, setContext } from 'svelte';
import { magnification } from '../charts/magnify.svelte';
import { layOutFigure, partOf, type Part } from './figure';
import type { Reading } from './readings';

const KEY = 'panel drawing';
interface Given {
  give: () => string;
  where: () => Element | undefined;
  read: () => Reading[];
}
export type Drawings = ReadonlySet<Given>;

/** For a chart: give its picture as the text of one SVG with width and height. Does nothing outside of a panel. */
export function provideDrawing(give: () => string, where: () => Element | undefined, read: () => Reading[] = () => []): void {
  const given = getContext<Set<Given> | undefined>(KEY);
  if (!given) return;
  const drawing = { give, where, read };
  given.add(drawing);
  onDestroy(() => given.delete(drawing));
}

/** For the panel: what its charts gave. */
export function collectDrawings(): Drawings {
  return setContext(KEY, new Set<Given>());
}

/** Every drawing inside an element with its subtitle, where it stands. */
export function partsIn(element: Element, given: Drawings): Part[] {
  const box = element.getBoundingClientRect();
  const times = magnification();
  const drawn = [...given].map(({ give, where, read }) => ({ text: give(), at: where(), read }));
  const others = drawnIn(element)
    .filter((svg) => !drawn.some(({ at }) => at && (at === svg || at.contains(svg) || svg.contains(at))))
    .map((svg) => ({ text: serialise(svg), at: svg as Element | undefined, read: (): Reading[] => [] }));
  return [...drawn, ...others].flatMap(({ text, at, read }) => {
    if (!text || !at || !element.contains(at)) return [];
    const { left, top } = at.getBoundingClientRect();
    const part = partOf(text, subtitleOf(at, element), (left - box.left) / times, (top - box.top) / times);
    return part ? { ...part, readings: read } : [];
  });
}

/** The picture of a panel as the text of one SVG, as it is drawn on the page; null when there is none. With `readings` it says what is pointed at. */
export function drawingOf(element: Element, given: Drawings, readings = false): string | null {
  const parts = partsIn(element, given);
  if (!parts.length) return null;
  const paper = getComputedStyle(document.documentElement).getPropertyValue('--panel').trim();
  return layOutFigure(parts, { paper, ink: getComputedStyle(element).color, margin: 12, readings }).svg;
}

/** Draw the picture into a PNG, `scale` pixels to a unit. */
export async function drawingToPng(svg: string, scale = 2): Promise<Blob> {
  const image = new Image();
  image.src = asAddress(svg);
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(image.naturalWidth * scale);
  canvas.height = Math.ceil(image.naturalHeight * scale);
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture is too large for this browser'))));
  });
}

export function asAddress(svg: string): string {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

/** What stands above a drawing that is one of several: the caption of its figure, the heading of its section, or what it is called. */
function subtitleOf(drawing: Element, within: Element): string {
  const holder = drawing.closest<HTMLElement>('figure, section, [data-part]');
  if (!holder || !within.contains(holder)) return '';
  return holder.dataset['part'] ?? holder.querySelector('figcaption, h3')?.textContent?.replaceAll(/\s+/g, ' ').trim() ?? '';
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
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  return new XMLSerializer().serializeToString(copy);
}
