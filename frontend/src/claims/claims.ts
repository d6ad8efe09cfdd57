/** The claims of a paper and what a run says about them, from the body of `claims.json`. */
import { labelsOf, pick, type Body } from '../api/body';
import { asOnPage } from '../charts/format';
import { listed } from '../reading/findings';

const VERDICTS = ['replicates', 'differs', 'inconclusive', 'not testable', 'not measured yet'] as const;
export type Verdict = (typeof VERDICTS)[number];
export const SIGNS: Record<Verdict, string> = { replicates: '✓', differs: '≠', inconclusive: '?', 'not testable': '–', 'not measured yet': '…' };

export interface Quantity {
  label: string;
  text: string; // with its interval
  n: number | null;
}

export interface Claim {
  id: string;
  title: string;
  verdict: Verdict;
  paper: string;
  reason: string;
  statement: string;
  measure: string;
  criterion: string;
  control: string;
  fixed: string; // when the criterion was fixed, and what had been seen by then
  results: string;
  missing: string[]; // of these, what is not measured yet
  figure: string; // an address, or empty
  found: Quantity[];
  controls: Quantity[];
}

export function readClaims(body: Body): Claim[] {
  const quantities = (of: string, kind: string): Quantity[] => {
    const at = (name: string) => (body.variables[`quantity_${name}`]?.values ?? []) as (string | number | null)[];
    return at('of').flatMap((id, index) => {
      if (id !== of || at('kind')[index] !== kind) return [];
      const n = at('n')[index];
      return [{ label: String(at('label')[index]), text: asOnPage(String(at('text')[index])), n: n === null || n === undefined ? null : Number(n) }];
    });
  };
  return labelsOf(body, 'claim').map((label) => {
    const id = String(label);
    const text = (name: string): string => String(pick(body, name, { claim: id })[0] ?? '');
    return {
      id, title: text('title'), verdict: text('verdict') as Verdict, paper: text('paper'), reason: asOnPage(text('reason')),
      statement: text('statement'), measure: text('measure'), criterion: text('criterion'), control: text('control'),
      fixed: text('fixed'), results: text('results'), missing: text('missing').split(', ').filter(Boolean), figure: text('figure'), found: quantities(id, 'found'), controls: quantities(id, 'control'),
    }; // prettier-ignore
  });
}

const SHORT = 220; // characters of a reason that stand in a row
const N_SHOWN = 3; // quantities in a row where the paper names no n

/** The first sentences of a reason, as many as a row holds: what decided comes first. */
export function headOf(reason: string): string {
  const sentences = reason.split(/(?<=[.:!?]) (?=[\p{Lu}\d“])/u);
  let head = sentences[0] ?? '';
  for (const sentence of sentences.slice(1)) {
    if (head.length + sentence.length >= SHORT) break;
    head += ` ${sentence}`;
  }
  return head.length < reason.length ? `${head} …` : head;
}

/** The quantities that stand in a row: those at the n, widths or steps that the paper's own words name; without any, the first. */
export function quantitiesInRow({ found, paper }: Claim): Quantity[] {
  const named = new Set(paper.match(/(?<![\d.,])\d[\d,]*(?!\.?\d)/g)?.map(plain));
  const there = found.filter(({ label }) => [...label.matchAll(/(?:n =|width|steps?) (\d[\d,]*)/g)].some((match) => named.has(plain(match[1] ?? ''))));
  return there.length ? there : found.slice(0, N_SHOWN);
}

const plain = (number: string): string => number.replaceAll(',', '');

/** 'Of 36 claims 20 replicate, 10 differ and 6 cannot be told yet.' */
export function tellVerdicts(counts: readonly [Verdict, number][], n: number): string {
  const WORDS: Record<Verdict, [string, string]> = {
    replicates: ['replicates', 'replicate'], differs: ['differs', 'differ'], inconclusive: ['is inconclusive', 'are inconclusive'],
    'not testable': ['is not testable', 'are not testable'], 'not measured yet': ['is not measured yet', 'are not measured yet'],
  }; // prettier-ignore
  return n ? `Of ${n} claims ${listed(counts.map(([verdict, count]) => `${count} ${WORDS[verdict][count === 1 ? 0 : 1]}`))}.` : '';
}

/** How many claims got each verdict, those that none got left out. */
export function countVerdicts(claims: Claim[]): [Verdict, number][] {
  return VERDICTS.map((verdict): [Verdict, number] => [verdict, claims.filter((claim) => claim.verdict === verdict).length]).filter(([, n]) => n);
}
