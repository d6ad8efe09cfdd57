/** What the patches of heads at positions say, as `bindscope.measures.binding.moves.reading`: arrows, and a sentence. */
import { labelsOf, number, numbers, type Body } from '../../api/body';

export interface Move {
  key: string; // as notes name it
  what: string; // 'value', or the reference whose name is moved
  layer: number;
  source: string; // where its heads attend to most, of the positions that held it
  target: string;
  effect: number; // of all heads of the layer at the target
  heads: { head: number; effect: number }[]; // the strongest of them, each by itself
}

export const VALUE = 'value';
export const SHOWN = { value: 0.1, pointer: 0.25 }; // the least effect of a layer's heads at a position that is drawn
const [NAMED, MOST_NAMED, HELD] = [0.1, 4, 0.5];

export const pathOf = (body: Body): string[] => labelsOf(body, 'position').map(String);
export const layersOf = (body: Body): number => body.sizes.layer ?? 0;
const above0 = (value: number | null): number => Math.max(0, value ?? 0);

/** Every move, by layer; `least` in place of the usual effect from which the value is drawn. */
export function readMoves(body: Body, least = SHOWN.value): Move[] {
  const path = pathOf(body);
  const found: Move[] = [];
  for (const what of labelsOf(body, 'what').map(String)) {
    const begin = what === VALUE ? 0 : path.indexOf(what); // a name goes on from its reference
    for (let layer = 0; layer < layersOf(body); layer += 1) {
      for (const target of path.slice(begin + 1)) {
        const effect = number(body, 'together', { what, layer, position: target });
        if (effect !== null && effect >= (what === VALUE ? least : Math.max(least, SHOWN.pointer))) found.push(moveAt(body, what, layer, begin, target, effect));
      }
    }
  }
  return found.sort((one, other) => one.layer - other.layer || path.indexOf(one.target) - path.indexOf(other.target));
}

function moveAt(body: Body, what: string, layer: number, begin: number, target: string, effect: number): Move {
  const path = pathOf(body);
  const alone = numbers(body, 'head', { what, layer, position: target });
  const ranked = alone.map((value, head) => ({ head, effect: value ?? 0 })).sort((one, other) => other.effect - one.effect);
  const heads = ranked.slice(0, MOST_NAMED).filter((each) => each.effect >= NAMED * effect);
  const strength = heads.length ? alone.map(above0) : alone.map(() => 1);
  const before = path.slice(begin, path.indexOf(target));
  const looked = before.map((from) => sum(strength.map((weight, index) => weight * (number(body, 'attended', { layer, index, position: target, from }) ?? 0))));
  const scored = before.map((from, at) => (looked[at] ?? 0) * above0(number(body, 'held', { what, layer, position: from })));
  const source = before[largest(scored.some((score) => score > 0) ? scored : looked)] ?? target;
  return { key: `${target.replace(' ', '')}.L${layer}>${what.replace(' ', '')}`, what, layer, source, target, effect, heads };
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
const largest = (values: number[]): number => values.reduce((best, value, index) => (value > (values[best] ?? -Infinity) ? index : best), 0);

/** Where the value sits, layer by layer, in one sentence. */
export function tellMoves(body: Body): string {
  const [path, n] = [pathOf(body), layersOf(body)];
  const spelled = body.coords.spelled?.values.map(String) ?? [];
  const spell = (name: string): string => (spelled[path.indexOf(name)] ? `‘${spelled[path.indexOf(name)]}’ (${name})` : name);
  const held = path.map((position) => numbers(body, 'held', { what: VALUE, position }).flatMap((value, layer) => ((value ?? 0) >= HELD ? [layer] : [])));
  if (held.every((layers) => !layers.length)) return 'No single position of the chain carries the value.';
  const parts = path.flatMap((name, at) => (held[at]?.length ? [`${spell(name)} ${spanOf(held[at]![0]!, held[at]!.at(-1)!, n)}`] : []));
  const colon = path.length - 1;
  if (!held[colon]?.length) parts.push(`${spell(path[colon] ?? '')} after L${n - 1}`);
  const missing = path.filter((_, at) => at !== colon && !held[at]?.length).map(spell);
  const never = missing.length ? `; ${join(missing)} never ${missing.length === 1 ? 'does' : 'do'} alone` : '';
  return `The value sits at ${join(parts)}${never}.`;
}

function spanOf(first: number, last: number, n: number): string {
  if (last === n - 1) return first < last ? `from L${first} on` : `entering L${first}`;
  return first === last ? `entering L${first}` : `entering L${first} to L${last}`;
}

function join(parts: string[]): string {
  return parts.length < 2 ? (parts[0] ?? '') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

const two = (value: number): string => value.toFixed(2).replace('-', '−');

/** One move in words. */
export function tellMove({ what, layer, source, target, effect, heads }: Move): string {
  const carried = what === VALUE ? 'the value' : `the name at ${what}`;
  const alone = heads.length ? heads.map(({ head, effect }) => `H${head} ${two(effect)} alone`).join(', ') : 'no head does much alone';
  return `L${layer} brings ${carried} from ${source} to ${target}: effect ${two(effect)} of all its heads there, ${alone}`;
}

/** The heads that make a move as sites that can be patched or ablated; all of the layer where none does it alone. */
export function sitesOf(move: Move, nHeads: number): string[] {
  const heads = move.heads.length ? move.heads.map(({ head }) => head) : Array.from({ length: nHeads }, (_, head) => head);
  return heads.map((head) => `L${move.layer}.H${head}@${move.target}`);
}

/** The head that does most by itself at each position that something is brought to, or without which most is lost, in words. */
export function tellStrongest(body: Body, name: 'head' | 'lost', at: Record<string, string>): string {
  const across = name === 'head' ? 'position' : 'ablated_at';
  const path = pathOf(body);
  const held = at.what === undefined || at.what === VALUE ? 0 : path.indexOf(at.what); // where it stands from the start, patching it brings nothing
  const found = labelsOf(body, across).map(String).flatMap((where) => {
    if (where === 'everywhere' || (name === 'head' && path.indexOf(where) <= held)) return [];
    const best = strongestAt(body, name, { ...at, [across]: where });
    return best && best.value >= NAMED ? [{ where, ...best }] : [];
  });
  if (!found.length) return `No head by itself ${name === 'head' ? 'moves the answer by a tenth of the way' : 'takes a tenth of the margin away'} at a single position.`;
  if (name === 'head') return `Strongest by itself: ${join(found.map(({ where, head, value }) => `${head} at ${where} (${two(value)})`))} of the way to the other answer.`;
  const most = found.reduce((best, one) => (one.value > best.value ? one : best));
  return `The answer needs ${most.head} at ${most.where} most: without it ${two(most.value)} of the margin is lost.`;
}

function strongestAt(body: Body, name: string, at: Record<string, string>): { head: string; value: number } | null {
  let best: { head: string; value: number } | null = null;
  for (let layer = 0; layer < layersOf(body); layer += 1) {
    for (const [head, value] of numbers(body, name, { ...at, layer }).entries()) {
      if (value !== null && value > (best?.value ?? 0)) best = { head: `L${layer}.H${head}`, value };
    }
  }
  return best;
}
