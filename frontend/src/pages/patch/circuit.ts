/** A circuit of edges: what is drawn where, and what it says. */
import { labelsOf, numbers, pick, type Body } from '../../api/body';
import type { Series } from '../../charts/types';

export interface Edge {
  key: string; // L0.H1>L2.H0.q
  sender: string;
  receiver: string;
  from: string; // the parts that it joins
  to: string;
  side: Side;
  at: string; // the named position where most of it comes
  effect: number;
  exact: number | null; // null: not patched
}
export type Side = 'q' | 'k' | 'v' | '';

export interface Node {
  name: string;
  label: string;
  x: number; // its middle
  y: number;
  width: number;
  layer: number; // -1: the embedding; as many as there are layers: the logits
}
export interface Layout {
  nodes: Map<string, Node>;
  spacing: number;
  height: number;
}

export const [EMBED, FINAL] = ['embed', 'final'];
export const HALF = 11; // of a node's height
const [ROW, RISE, MARGIN] = [66, 0.44, 26]; // RISE: how far an MLP stands above the heads of its layer
const SIDES: Readonly<Record<string, string>> = { q: 'queries', k: 'keys', v: 'values' };

/** The head, MLP, embedding or logits that a site belongs to: L2.H0.q → L2.H0. */
export function partOf(site: string): string {
  return site.replace(/\.[qkv]$/, '');
}

/** All edges that were sent, strongest first. */
export function edgesOf(body: Body): Edge[] {
  const [effects, exact] = [numbers(body, 'effect'), numbers(body, 'exact')];
  const column = (name: string): string[] => (body.coords[name]?.values ?? []).map(String);
  const [receivers, at] = [column('receiver'), column('at')];
  return column('sender').map((sender, index) => {
    const receiver = receivers[index] ?? '';
    return {
      key: `${sender}>${receiver}`, sender, receiver, from: sender, to: partOf(receiver), side: (/\.([qkv])$/.exec(receiver)?.[1] ?? '') as Side,
      at: at[index] ?? '', effect: effects[index] ?? 0, exact: exact[index] ?? null,
    }; // prettier-ignore
  });
}

/** The strongest edges, and besides those that carry a note or are chosen. */
export function shownEdges(edges: Edge[], count: number, also: Iterable<string>): Edge[] {
  const wanted = new Set(also);
  return edges.filter(({ key }, index) => index < count || wanted.has(key));
}

/** Layers as rows from the embedding below to the logits above, heads from left to right and the MLP last. */
export function layOut(parts: string[], width: number): Layout {
  const known = parts.map((name) => ({ name, layer: Number(/^L(\d+)/.exec(name)?.[1] ?? -1), head: /\.H(\d+)$/.exec(name)?.[1] }));
  const layers = 1 + Math.max(...known.map(({ layer }) => layer));
  const heads = 1 + Math.max(...known.map(({ head }) => Number(head ?? 0)));
  const spacing = (width - 2 * MARGIN) / (heads + (known.some(({ name }) => name.endsWith('mlp_out')) ? 1 : 0));
  const height = ROW * (layers + 1) + 2 * MARGIN;
  const row = (layer: number): number => height - MARGIN - ROW * (layer + 1);
  const small = Math.min(52, 0.72 * spacing);
  const nodes = new Map<string, Node>();
  for (const { name, layer, head } of known) {
    if (/\.[qkv]$/.test(name)) continue;
    if (layer < 0) nodes.set(name, { name, label: 'embedding', x: width / 2, y: row(-1), width: width - 2 * MARGIN, layer });
    else if (head !== undefined) nodes.set(name, { name, label: small < 46 ? `${layer}.${head}` : name, x: MARGIN + spacing * (Number(head) + 0.5), y: row(layer), width: small, layer });
    else nodes.set(name, { name, label: small < 36 ? `M${layer}` : 'MLP', x: MARGIN + spacing * (heads + 0.5), y: row(layer) - ROW * RISE, width: small, layer });
  }
  nodes.set(FINAL, { name: FINAL, label: 'logits', x: width / 2, y: row(layers), width: width - 2 * MARGIN, layer: layers });
  return { nodes, spacing, height };
}

/** From the top of a sender to the port of a receiver: queries arrive left, keys in the middle, values right. What comes from the embedding or goes to the logits keeps between the columns. */
export function pathOf(edge: Edge, { nodes, spacing }: Layout): string {
  const [from, to] = [nodes.get(edge.from), nodes.get(edge.to)];
  if (!from || !to) return '';
  const port = { q: -0.3, k: 0, v: 0.3, '': 0 }[edge.side] * to.width;
  const [y0, y1] = [from.y - HALF, to.y + HALF];
  const column = edge.from === EMBED ? to : from;
  const gutter = Math.min(0.47 * spacing, column.width / 2 + 6 + 5 * column.layer) * (edge.side === 'q' ? -1 : 1); // a lane for each layer
  if (edge.from === EMBED && edge.to === FINAL) return `M${from.x},${y0} L${from.x},${y1}`;
  if (edge.from === EMBED) {
    const x = to.x + port;
    const along = to.layer > 0 ? to.x + gutter : x;
    return `M${along},${y0} L${along},${Math.min(y0, y1 + 34)} C${along},${y1 + 12} ${x},${y1 + 22} ${x},${y1}`;
  }
  if (edge.to === FINAL) {
    const along = to.layer - from.layer > 1 ? from.x + gutter : from.x;
    return `M${from.x},${y0} C${from.x},${y0 - 20} ${along},${y0 - 8} ${along},${Math.max(y1, y0 - 34)} L${along},${y1}`;
  }
  const reach = Math.max(8, 0.45 * (y0 - y1));
  const bow = to.layer - from.layer > 1 ? gutter : 0;
  return `M${from.x},${y0} C${from.x + bow},${y0 - reach} ${to.x + port + bow},${y1 + reach} ${to.x + port},${y1}`;
}

/** A point on an edge where a mark can stand: the bend beside its column, or the middle. */
export function markOn(edge: Edge, layout: Layout): { x: number; y: number } | null {
  const points = [...pathOf(edge, layout).matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map((match) => ({ x: Number(match[1]), y: Number(match[2]) }));
  const [a, b, c, d] = points;
  if (!a || !b) return null;
  if (!c || !d) return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  if (edge.from === EMBED) return b;
  if (edge.to === FINAL) return d;
  return { x: (a.x + 3 * b.x + 3 * c.x + d.x) / 8, y: (a.y + 3 * b.y + 3 * c.y + d.y) / 8 };
}

/** How thick an edge is drawn beside the strongest one. */
export function thickness(effect: number, strongest: number): number {
  return 0.8 + 4.4 * (strongest ? Math.min(1, Math.abs(effect) / strongest) : 0);
}

/** A receiver in words: L2.H0.q → queries of L2.H0. */
export function nameReceiver(receiver: string): string {
  const side = /\.([qkv])$/.exec(receiver)?.[1];
  return side ? `${SIDES[side]} of ${partOf(receiver)}` : namePart(receiver);
}

export function namePart(part: string): string {
  return { [EMBED as string]: 'the embedding', [FINAL as string]: 'the logits' }[part] ?? part.replace(/^L(\d+)\.mlp_out$/, 'the MLP of layer $1');
}

const show = (value: number): string => value.toFixed(3).replace('-', '−');

export function tellEdge({ sender, receiver, at, effect, exact }: Edge): string {
  const patched = exact === null ? 'not patched exactly' : `exact ${show(exact)}`;
  return `${namePart(sender)} → ${nameReceiver(receiver)}: attributed ${show(effect)}, ${patched}${at ? `, mostly at ${at}` : ''}`;
}

/** What a part does as a whole, and of a head what its three inputs do. */
export function tellPart(body: Body, part: string): string {
  if (part === FINAL) return 'the logits: where all edges end';
  const [effects, exact] = [numbers(body, 'part_effect'), numbers(body, 'part_exact')];
  const names = labelsOf(body, 'part').map(String);
  const tell = (name: string, words: string): string[] => {
    const index = names.indexOf(name);
    if (index < 0) return [];
    const [guess, true_] = [effects[index] ?? null, exact[index] ?? null];
    return [`${words}: attributed ${guess === null ? '–' : show(guess)}, exact ${true_ === null ? '–' : show(true_)}`];
  };
  const inputs = Object.entries(SIDES).flatMap(([side, words]) => tell(`${part}.${side}`, `its ${words}`));
  return [...tell(part, `${namePart(part)}, all its edges`), ...inputs].join('; ');
}

/** How far the work has come; empty when it is done. */
export function tellProgress(body: Body): string {
  const known = (name: string): number => numbers(body, name).filter((value) => value !== null).length;
  const [edges, allEdges] = [known('exact'), Number(body.attrs?.n_checked ?? 0)];
  const [sizes, allSizes] = [known('kept'), body.sizes.size ?? 0];
  if (edges >= allEdges && sizes >= allSizes) return '';
  return `${edges} of ${allEdges} edges patched exactly, ${sizes} of ${allSizes} circuits tried…`;
}

/** A sentence that came with the body. */
export function told(body: Body, name: 'finding' | 'error'): string {
  return String(pick(body, name)[0] ?? '');
}

/** Faithfulness over size: of the strongest edges with its interval, of random circuits from the least to the most. */
export function faithfulness(body: Body): Series[] {
  const x = labelsOf(body, 'size').map(Number);
  const [least, most] = [numbers(body, 'random_least'), numbers(body, 'random_most')];
  const middle = least.map((low, index) => (low === null || most[index] == null ? null : (low + (most[index] ?? 0)) / 2));
  const own = { low: numbers(body, 'faithfulness_low'), high: numbers(body, 'faithfulness_high') };
  return [
    { name: 'strongest edges', x, y: numbers(body, 'faithfulness'), ...own },
    { name: 'random circuits', x, y: middle, low: least, high: most },
  ];
}
