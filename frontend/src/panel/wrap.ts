/** Lines no wider than there is room, by the mean width of letters. */
export function wrap(text: string, width: number, size: number): string[] {
  const most = Math.max(8, Math.floor(width / (0.52 * size)));
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
