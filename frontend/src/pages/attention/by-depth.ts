/** Answers that fall when one head is taken out, by depth of the chain and by the position where it is. */
import { labelsOf, number, numbers, type Body } from '../../api/body';
import type { Bar } from '../../charts/types';
import { listed } from '../../reading/findings';

export const EVERYWHERE = 'anywhere'; // what the study calls an ablation at every position

export function positionsOf(body: Body): string[] {
  return labelsOf(body, 'ablated_at').map(String);
}

export function knownPosition(body: Body, wanted: string): string {
  return positionsOf(body).includes(wanted) ? wanted : EVERYWHERE;
}

export function wordsOfPosition(position: string): string {
  return position === EVERYWHERE ? 'everywhere' : `at ${position}`;
}

/** The depths whose chains have the position. */
export function depthsAt(body: Body, position: string): number[] {
  return labelsOf(body, 'depth').map(Number).filter((depth) => number(body, 'n', { ablated_at: position, depth }) !== null);
}

/** Layers, the last on top, as the network is usually drawn. */
export function layersOf(body: Body): string[] {
  return labelsOf(body, 'layer').map(String).reverse();
}

/** What is lost, over (layer, head) row by row, the last layer first. */
export function lostBy(body: Body, position: string, depth: number): (number | null)[] {
  return layersOf(body).flatMap((layer) => numbers(body, 'lost', { ablated_at: position, depth, layer }));
}

/** The head that costs most by itself, or null where none costs anything. */
export function costliest(body: Body, position: string, depth: number): { head: string; lost: number } | null {
  const lost = lostBy(body, position, depth).map((value) => value ?? 0);
  const most = Math.max(...lost);
  const heads = layersOf(body).flatMap((layer) => labelsOf(body, 'head').map((head) => `L${layer}.H${head}`));
  return most > 0 ? { head: heads[lost.indexOf(most)] ?? '', lost: most } : null;
}

/** Which head costs most, at the depth where it costs most, and at which depths none costs anything. */
export function tellCostliest(body: Body, position: string): string {
  const found = depthsAt(body, position).map((depth) => ({ depth, most: costliest(body, position, depth) }));
  const none = found.filter(({ most }) => !most).map(({ depth }) => String(depth));
  const worst = found.reduce<{ depth: number; head: string; lost: number } | null>((best, { depth, most }) => (most && most.lost > (best?.lost ?? 0) ? { depth, ...most } : best), null);
  const free = none.length ? `no head costs anything at depth ${listed(none)}` : '';
  if (!worst) return `Taken out ${wordsOfPosition(position)}, ${free}.`;
  return `Taken out ${wordsOfPosition(position)}, ${worst.head} costs most: ${Math.round(100 * worst.lost)} points at depth ${worst.depth}${free ? `; ${free}` : ''}.`;
}

/** A bar for each depth: what one head costs on the mean over all of them, taken out everywhere. */
export function depthBars(body: Body): Bar[] {
  return labelsOf(body, 'depth').map((depth) => ({
    label: `depth ${depth}`,
    value: number(body, 'drop', { depth }),
    low: number(body, 'drop_low', { depth }),
    high: number(body, 'drop_high', { depth }),
    n: number(body, 'n', { ablated_at: EVERYWHERE, depth }),
  }));
}

/** Where the bars end: the next tenth above the highest interval. */
export function barLimit(body: Body): number {
  const most = Math.max(...numbers(body, 'drop_high').map((value) => value ?? 0));
  return Math.max(0.1, Math.ceil(10 * most) / 10);
}
