/** The known word that is most like a mistaken one. */
export function nearestWord(wanted: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let least = Infinity;
  for (const word of known) {
    const distance = editDistance(wanted.slice(0, 60), word.slice(0, 60));
    if (distance < least) [best, least] = [word, distance];
  }
  return best;
}

/** How many letters to put in, take out or exchange. */
export function editDistance(first: string, second: string): number {
  let row = Array.from({ length: second.length + 1 }, (_, index) => index);
  for (let i = 1; i <= first.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= second.length; j += 1) {
      const exchange = (row[j - 1] ?? 0) + (first[i - 1] === second[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, exchange));
    }
    row = next;
  }
  return row[second.length] ?? 0;
}
