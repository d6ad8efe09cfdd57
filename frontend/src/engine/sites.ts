/**
 * The names of sites in a model, the same texts as everywhere else: 'L2.H1', 'L3.resid_pre@12', 'L0.mlp_out', or as
 * TransformerLens names them: 'blocks.3.hook_resid_pre@12'.
 */
import type { Numbers } from './arithmetic';
import { hasMlp, type Shape } from './model';
import { Refusal } from './refusal';

export type SiteName = keyof typeof AXES;

/** How each activation lies in memory; a head's and a position's numbers are neighbours. */
type Axes = 'position' | 'position, head' | 'head, query';
const AXES = {
  embed: 'position',
  pos_embed: 'position',
  resid_pre: 'position',
  q: 'position, head',
  k: 'position, head',
  v: 'position, head',
  rot_q: 'position, head',
  rot_k: 'position, head',
  scores: 'head, query',
  pattern: 'head, query',
  z: 'position, head',
  result: 'position, head',
  attn_out: 'position',
  resid_mid: 'position',
  pre: 'position',
  post: 'position',
  mlp_out: 'position',
  resid_post: 'position',
  final: 'position',
} as const satisfies Record<string, Axes>;

const OUTSIDE: readonly string[] = ['embed', 'pos_embed', 'final'];
const WITH_MLP: readonly string[] = ['pre', 'post', 'mlp_out', 'resid_mid'];
const GRAMMAR = /^(?:L(\d+)\.)?(?:H(\d+)\.)?([a-z_]+)(?:@(\d+(?:,\d+)*))?$/;
const HEAD = /^(L\d+\.H\d+)(@[\d,]+)?$/;
const HOOK = /^(?:blocks\.(\d+)\.)?([a-z_.]+)(@[\d,]+)?$/;
const BY_HOOK = new Map((Object.keys(AXES) as SiteName[]).map((name) => [hookOf(name), name]));
BY_HOOK.set('ln_final.hook_normalized', 'final');

export interface Site {
  readonly name: SiteName;
  readonly layer: number | null;
  readonly head: number | null;
  readonly positions: readonly number[] | null; // null: all
}

/** The site that a text names in a model, for a sequence of this length; a head alone is its whole output. */
export function readSite(text: string, shape: Shape, nPositions: number): Site {
  const own = ownName(text.trim());
  const head = HEAD.exec(own);
  const match = GRAMMAR.exec(head ? `${head[1]}.result${head[2] ?? ''}` : own);
  const refuse = (why: string): never => {
    throw new Refusal(`site '${text}': ${why}.`);
  };
  if (!match) return refuse("expected the form 'L3.resid_pre@12', 'L6.H5.z' or 'embed'");
  const [layer, one] = [match[1], match[2]].map((digits) => (digits === undefined ? null : Number(digits)));
  const name = match[3] as SiteName;
  if (!(name in AXES)) refuse(`unknown name '${name}'`);
  if (OUTSIDE.includes(name) !== (layer === null)) {
    refuse(layer === null ? `'${name}' needs a layer, as in 'L0.${name}'` : `'${name}' belongs to no layer`);
  }
  if (one !== null && !AXES[name].includes('head')) refuse(`'${name}' has no heads`);
  if (layer !== null && layer! >= shape.n_layers) refuse(`the model has layers 0 to ${shape.n_layers - 1}`);
  if (one !== null && one! >= shape.n_heads) refuse(`the model has heads 0 to ${shape.n_heads - 1}`);
  const positions = match[4]?.split(',').map(Number) ?? null;
  if (positions && Math.max(...positions) >= nPositions) {
    refuse(`the sequence has positions 0 to ${nPositions - 1}`);
  }
  if (WITH_MLP.includes(name) && !hasMlp(shape, layer!)) refuse(`layer ${layer} of this model has no MLP`);
  if (name.startsWith('rot_') && shape.positions !== 'rope') refuse('this model does not rotate its queries and keys');
  if (name === 'pos_embed' && !['learned', 'normal'].includes(shape.positions)) {
    refuse('this model adds no position embeddings');
  }
  return { name, layer: layer ?? null, head: one ?? null, positions };
}

/** 'blocks.3.attn.hook_z@12' as 'L3.z@12'; whatever names no hook point as it is. */
function ownName(text: string): string {
  const [, layer, point, positions = ''] = HOOK.exec(text) ?? [];
  const name = BY_HOOK.get(`${layer === undefined ? '' : 'blocks.{}.'}${point}`);
  return name === undefined ? text : `${layer === undefined ? '' : `L${layer}.`}${name}${positions}`;
}

/** What TransformerLens calls an activation, with '{}' for the layer. */
function hookOf(name: SiteName): string {
  if (name === 'final') return 'ln_final.hook_out';
  if (OUTSIDE.includes(name)) return `hook_${name}`;
  const block = AXES[name] === 'position' ? (['pre', 'post'].includes(name) ? 'mlp.' : '') : 'attn.';
  return `blocks.{}.${block}hook_${name === 'scores' ? 'attn_scores' : name}`;
}

/** The stretches [from, to) of an activation's numbers that belong to a site. */
export function stretchesOf(site: Site, value: Numbers, shape: Shape, nPositions: number): [number, number][] {
  const axes: Axes = AXES[site.name];
  const positions = site.positions ?? Array.from({ length: nPositions }, (_, position) => position);
  if (axes === 'position') return positions.map((position) => stretch(position, value.length / nPositions));
  const width = value.length / nPositions / shape.n_heads;
  const heads = site.head === null ? Array.from({ length: shape.n_heads }, (_, head) => head) : [site.head];
  return heads.flatMap((head) =>
    positions.map((position) =>
      stretch(axes === 'head, query' ? head * nPositions + position : position * shape.n_heads + head, width),
    ),
  );
}

function stretch(index: number, width: number): [number, number] {
  return [index * width, (index + 1) * width];
}
