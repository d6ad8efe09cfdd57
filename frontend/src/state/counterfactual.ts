/** Small readings of a program's text that the frame needs; the server's own reader is the one that decides. */

/** The line on which the queried chain ends (from 0), with its name and constant; null where the query leads to no constant. */
export function rootOf(program: string): { line: number; name: string; constant: number } | null {
  const lines = program.split('\n');
  const query = lines.findLastIndex((line) => line.trim().startsWith('#'));
  let name = /^\s*#\s*([a-z])\s*:?\s*$/.exec(lines[query] ?? '')?.[1];
  for (let before = query; name !== undefined && before > 0; ) {
    const line = lines.slice(0, before).findLastIndex((text) => text.trim().startsWith(`${name}=`)); // the latest assignment counts
    const value = lines[line]?.split('=')[1]?.trim() ?? '';
    if (/^\d$/.test(value)) return { line, name, constant: Number(value) };
    name = /^[a-z]$/.test(value) ? value : undefined;
    before = line;
  }
  return null;
}

/** The same lines with the constant that answers the query moved on by one: `'a=5\nb=a\n#b:'` gives `'a=6\nb=a\n#b:'`. */
export function usualCounterfactual(program: string): string {
  const root = rootOf(program);
  if (!root) return '';
  return program.split('\n').with(root.line, `${root.name}=${(root.constant + 1) % 10}`).join('\n');
}

/** The constant of the first line, which is what the early-line heuristic answers. */
export function firstConstant(program: string): number | null {
  const digit = /^\s*[a-z]\s*=\s*(\d)\s*(?:\n|$)/.exec(program)?.[1];
  return digit === undefined ? null : Number(digit);
}

/** The places where two texts of equal length differ; null when their lengths do. */
export function differences(first: string, second: string): Set<number> | null {
  if (first.length !== second.length) return null;
  return new Set([...first].flatMap((character, index) => (character === second[index] ? [] : [index])));
}
