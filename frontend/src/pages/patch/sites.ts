/** Cells of a grid as names of sites in the model, `L2.resid_pre@14`, and back. */
import { labelsOf, type Body } from '../../api/body';
import { positionOf, type Program } from '../../program/program';

/** What a grid's cells are. */
export type Kind = 'residual' | 'chain' | 'heads' | 'mlps';

export const MOST_SITES = 64;

/** Which grid a body holds: its axes say so. */
export function kindOf(body: Body): Kind {
  if ('position' in body.sizes) return labelsOf(body, 'position').some((label) => typeof label === 'string') ? 'chain' : 'residual';
  return 'head' in body.sizes ? 'heads' : 'mlps';
}

/** What runs across a grid, beside its layers: labels as sites name them. */
export function acrossOf(body: Body): string[] {
  const dim = { residual: 'position', chain: 'position', heads: 'head', mlps: '' }[kindOf(body)];
  return dim ? labelsOf(body, dim).map(String) : [''];
}

/** The site that a cell stands for. */
export function siteOf(kind: Kind, layer: string, across: string): string {
  if (kind === 'heads') return `L${layer}.H${across}`;
  return kind === 'mlps' ? `L${layer}.mlp_out` : `L${layer}.resid_pre@${across}`;
}

/** The cells of these sites that a grid has, as `row,column` with rows in the order of `layers`. */
export function cellsOf(body: Body, layers: string[], sites: readonly string[]): Set<string> {
  const kind = kindOf(body);
  const cells = layers.flatMap((layer, row) =>
    acrossOf(body).map((across, column) => ({ site: siteOf(kind, layer, across), cell: `${row},${column}` })),
  );
  return new Set(cells.filter(({ site }) => sites.includes(site)).map(({ cell }) => cell));
}

/** The sites in the address, joined by ';'. */
export function readSites(text: string): string[] {
  return [...new Set(text.split(';').map((site) => site.trim()).filter(Boolean))].slice(0, MOST_SITES);
}

/** The chosen sites after one more was picked: alone, or joined to the others (and taken out again when it was among them). */
export function pickSite(sites: readonly string[], site: string, joined: boolean): string[] {
  if (!joined) return sites.length === 1 && sites[0] === site ? [] : [site];
  return sites.includes(site) ? sites.filter((other) => other !== site) : [...sites, site].slice(0, MOST_SITES);
}

/** The named positions of a program's chain, as `bindscope.tasks.binding.structure` has them. */
export function namedPositions(program: Program): Record<string, number> {
  const lines = [...program.chain].reverse(); // the root first
  const named: Record<string, number> = {};
  lines.forEach((line, index) => {
    named[`lhs ${index + 1}`] = positionOf(program, 'lhs', line);
    named[`rhs ${index + 1}`] = positionOf(program, 'rhs', line);
  });
  const root = program.rootLine;
  const aside = [...program.distractorLines].sort((one, other) => after(root, one, program.nLines) - after(root, other, program.nLines));
  if (aside[0] !== undefined) named.distractor = positionOf(program, 'rhs', aside[0]);
  return { ...named, query: positionOf(program, 'query'), colon: positionOf(program, 'colon') };
}

/** How far a line stands from the root: lines after it come first. */
function after(root: number, line: number, nLines: number): number {
  return line > root ? line - root : nLines + root - line;
}

/** Sites at named positions as sites at positions of this program; null for one whose position the program does not have. */
export function placeSites(sites: readonly string[], program: Program): { site: string; placed: string | null }[] {
  const named = namedPositions(program);
  return sites.map((site) => {
    const [name, at] = site.split('@');
    if (at === undefined || /^[\d,]+$/.test(at)) return { site, placed: site };
    const position = named[at];
    return { site, placed: position === undefined ? null : `${name}@${position}` };
  });
}
