/** The usual counterfactual of a program: the same lines with the constant that answers the query moved on by one. */

/** Empty where the query does not lead to a constant: `usualCounterfactual('a=5\nb=a\n#b:')` is `'a=6\nb=a\n#b:'`. */
export function usualCounterfactual(program: string): string {
  const lines = program.split('\n');
  const query = lines.findLastIndex((line) => line.trim().startsWith('#'));
  let name = /^\s*#\s*([a-z])\s*:?\s*$/.exec(lines[query] ?? '')?.[1];
  for (let before = query; name !== undefined && before > 0; ) {
    const at = lines.slice(0, before).findLastIndex((line) => line.trim().startsWith(`${name}=`)); // the latest assignment counts
    const value = lines[at]?.split('=')[1]?.trim() ?? '';
    if (/^\d$/.test(value)) return lines.with(at, `${name}=${(Number(value) + 1) % 10}`).join('\n');
    name = /^[a-z]$/.test(value) ? value : undefined;
    before = at;
  }
  return '';
}

/** The places where two texts of equal length differ; null when their lengths do. */
export function differences(first: string, second: string): Set<number> | null {
  if (first.length !== second.length) return null;
  return new Set([...first].flatMap((character, index) => (character === second[index] ? [] : [index])));
}
