/** How chains are followed at one checkpoint: what the panel draws and tells, read from the rows of a body. */
import { numbers, type Body, type Value } from '../../api/body';
import { listed } from '../../reading/findings';

export interface Arrow {
  what: 'value' | 'pointer';
  source: string;
  targets: string[];
  layer: number;
  strength: number;
}

export interface Reading {
  depth: number;
  algorithm: string;
  accuracy: number;
  arrows: Arrow[];
  hops: { reference: string; way: string; text: string }[];
}

const WAYS = ['value', 'pointer', 'both', 'jointly', 'none'];

function column(body: Body, name: string): Value[] {
  return (body.coords[name]?.values ?? []) as Value[];
}

/** Every checkpoint that was measured. */
export function stepsOf(body: Body): number[] {
  return [...new Set(column(body, 'reading_step').map(Number))];
}

/** The depths at one of these checkpoints. */
export function readingsAt(body: Body, step: number): Reading[] {
  const rows = (kind: string, depth: number): number[] =>
    column(body, `${kind}_step`).flatMap((at, row) => (Number(at) === step && Number(column(body, `${kind}_depth`)[row]) === depth ? [row] : []));
  const accuracy = numbers(body, 'accuracy');
  const strength = numbers(body, 'strength');
  const fractions = WAYS.map((way) => numbers(body, `by_${way}`));
  const depths = column(body, 'reading_step').flatMap((at, row) => (Number(at) === step ? [{ row, depth: Number(column(body, 'reading_depth')[row]) }] : []));
  return depths.map(({ row, depth }) => ({
    depth,
    algorithm: String(column(body, 'algorithm')[row]),
    accuracy: accuracy[row] ?? 0,
    arrows: rows('arrow', depth).map((at) => ({
      what: column(body, 'what')[at] === 'pointer' ? 'pointer' : 'value',
      source: String(column(body, 'source')[at]),
      targets: String(column(body, 'targets')[at]).split(' + '),
      layer: Number(column(body, 'last_layer')[at]),
      strength: strength[at] ?? 0,
    })),
    hops: rows('hop', depth).map((at) => ({
      reference: String(column(body, 'reference')[at]),
      way: String(column(body, 'way')[at]),
      text: WAYS.map((way, index) => `${way} ${Math.round(100 * (fractions[index]?.[at] ?? 0))} %`)
        .filter((text) => !text.endsWith(' 0 %'))
        .join(', '),
    })),
  }));
}

/** The positions of a chain with what stands there in an example: rhs 1 (a=5), …, query (#b), colon (:). */
export function pathOf(depth: number): { name: string; text: string }[] {
  const letter = (index: number): string => String.fromCharCode(97 + index);
  const lines = Array.from({ length: depth }, (_, hop) => ({ name: `rhs ${hop + 1}`, text: `${letter(hop)}=${hop ? letter(hop - 1) : '5'}` }));
  return [...lines, { name: 'query', text: `#${letter(depth - 1)}` }, { name: 'colon', text: ':' }];
}

/** 'Depths 1 and 2: value-forward; depths 3 and 4: meeting in the middle.' */
export function tellAlgorithms(readings: readonly Reading[]): string {
  const kinds = [...new Set(readings.map(({ algorithm }) => algorithm))];
  const told = kinds.map((kind) => {
    const depths = readings.filter(({ algorithm }) => algorithm === kind).map(({ depth }) => String(depth));
    return `depth${depths.length > 1 ? 's' : ''} ${listed(depths)}: ${kind}`;
  });
  return told.length ? `${told.join('; ')}.`.replace(/^d/, 'D') : '';
}

/** One sentence for a reader who does not see the arrows. */
export function tellReading(reading: Reading): string {
  const arrows = reading.arrows.map(({ what, source, targets, layer }) => `${source} to ${targets.join(' and ')} as ${what} in layer ${layer}`);
  return `Depth ${reading.depth}, ${reading.algorithm}${arrows.length ? `: ${arrows.join('; ')}` : ''}.`;
}
