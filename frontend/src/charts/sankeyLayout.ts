/** Where the nodes and ribbons of a two-column flow drawing go. */
import type { Limits } from './colour';
import type { Flow } from './types';

export interface Node {
  name: string;
  side: 'from' | 'to';
  amount: number;
  fraction: number; // of everything that flows
  top: number;
  bottom: number;
}
export interface Ribbon {
  from: string;
  to: string;
  amount: number;
  fraction: number; // of everything
  fractionOfFrom: number; // of what leaves its start
  start: Limits; // top and bottom at the start
  end: Limits; // and at the end
}
export interface SankeyLayout {
  nodes: Node[];
  ribbons: Ribbon[];
  total: number;
}

/** Both columns fill `height` with `gap` pixels between nodes; nodes keep the given order, others follow as they first appear. Flows between
the same two nodes are joined, and those that carry nothing are left out: `layOutSankey([{from: 'a', to: 'x', amount: 2}], 100, 8)`. */
export function layOutSankey(flows: readonly Flow[], height: number, gap: number, order: readonly string[] = []): SankeyLayout {
  const joined = joinFlows(flows);
  const total = joined.reduce((sum, flow) => sum + flow.amount, 0);
  if (!total) return { nodes: [], ribbons: [], total: 0 };
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  const inOrder = (names: string[]): string[] => [...new Set(names)].sort((one, other) => place(one) - place(other));
  const [froms, tos] = [inOrder(joined.map((flow) => flow.from)), inOrder(joined.map((flow) => flow.to))];
  const gaps = (Math.max(froms.length, tos.length) - 1) * gap;
  const scale = Math.max(height * 0.2, height - gaps) / total;
  const nodes = [
    ...stack(froms, 'from', joined, total, scale, height, gap),
    ...stack(tos, 'to', joined, total, scale, height, gap),
  ];
  return { nodes, ribbons: ribbonsOf(joined, froms, tos, nodes, total, scale), total };
}

/** A ribbon's outline between the columns at `left` and `right`. */
export function ribbonPath(ribbon: Ribbon, left: number, right: number): string {
  const middle = (left + right) / 2;
  const [[a, b], [c, d]] = [ribbon.start, ribbon.end];
  return `M${left} ${a}C${middle} ${a} ${middle} ${c} ${right} ${c}V${d}C${middle} ${d} ${middle} ${b} ${left} ${b}Z`;
}

function joinFlows(flows: readonly Flow[]): Flow[] {
  const joined = new Map<string, Flow>();
  for (const { from, to, amount } of flows) {
    if (!(amount > 0) || !Number.isFinite(amount)) continue;
    const key = JSON.stringify([from, to]);
    joined.set(key, { from, to, amount: amount + (joined.get(key)?.amount ?? 0) });
  }
  return [...joined.values()];
}

function stack(names: string[], side: Node['side'], flows: Flow[], total: number, scale: number, height: number, gap: number): Node[] {
  const between = names.length > 1 ? Math.max(gap * 0.2, Math.min(gap, (height - total * scale) / (names.length - 1))) : 0;
  let top = (height - total * scale - between * (names.length - 1)) / 2;
  return names.map((name) => {
    const amount = flows.filter((flow) => flow[side] === name).reduce((sum, flow) => sum + flow.amount, 0);
    const node = { name, side, amount, fraction: amount / total, top, bottom: top + amount * scale };
    top = node.bottom + between;
    return node;
  });
}

/** Ribbons leave a node in the order of the nodes they go to, and arrive in the order of those they come from, so that few cross. */
function ribbonsOf(flows: Flow[], froms: string[], tos: string[], nodes: Node[], total: number, scale: number): Ribbon[] {
  const node = (side: Node['side'], name: string): Node | undefined => nodes.find((one) => one.side === side && one.name === name);
  const used = new Map<Node, number>();
  const take = (from: Node | undefined, thickness: number): Limits => {
    if (!from) return [0, 0];
    const top = used.get(from) ?? from.top;
    used.set(from, top + thickness);
    return [top, top + thickness];
  };
  const ordered = [...flows].sort((one, other) => froms.indexOf(one.from) - froms.indexOf(other.from) || tos.indexOf(one.to) - tos.indexOf(other.to));
  return ordered.map(({ from, to, amount }) => ({
    from,
    to,
    amount,
    fraction: amount / total,
    fractionOfFrom: amount / (node('from', from)?.amount ?? amount),
    start: take(node('from', from), amount * scale),
    end: take(node('to', to), amount * scale),
  }));
}
