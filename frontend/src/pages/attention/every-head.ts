/** Heads ablated in turn and together, in sentences. */
import { labelsOf, number, type Body } from '../../api/body';
import { formatPercent } from '../../charts/format';

/** The head that costs most logits, at the depth where it does. */
export function costliestOf(body: Body): string {
  let most = { head: '', depth: '', lost: 0 };
  for (const depth of labelsOf(body, 'depth').map(String)) {
    for (const layer of labelsOf(body, 'layer').map(String)) {
      for (const head of labelsOf(body, 'head').map(String)) {
        const low = number(body, 'lost_low', { depth, layer, head }) ?? 0;
        if (low > most.lost) most = { head: `L${layer}.H${head}`, depth, lost: low };
      }
    }
  }
  if (!most.head) return 'No head by itself costs logits that the interval tells from none.';
  const [layer, head] = most.head.slice(1).split('.H');
  const at = { depth: most.depth, layer: layer ?? '', head: head ?? '' };
  const [lost, whole] = [number(body, 'lost', at) ?? 0, number(body, 'margin', { depth: most.depth }) ?? 0];
  return `${most.head} costs most, at depth ${most.depth}: ${lost.toFixed(1)} logits, where the whole model’s margin is ${whole.toFixed(1)}; without it ${formatPercent(number(body, 'accuracy', at))} are answered correctly.`;
}

/** Accuracy by depth without a set of heads: 'Without L1.H0 and L1.H1: depth 1 100 %, depth 2 81 %.' */
export function tellSet(body: Body, heads: readonly string[]): string {
  const by = labelsOf(body, 'depth').map((depth) => `depth ${depth} ${formatPercent(number(body, 'accuracy', { depth }))}`);
  return `Without ${heads.length > 1 ? `${heads.slice(0, -1).join(', ')} and ${heads.at(-1)}` : heads[0]}: ${by.join(', ')}.`;
}

/** The set with a head more, or without it where it was in. */
export function toggleHead(set: readonly string[], head: string): string[] {
  return set.includes(head) ? set.filter((other) => other !== head) : [...set, head];
}
