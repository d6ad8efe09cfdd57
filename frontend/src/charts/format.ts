/** Numbers and labels as words. */

/** `0.0312` → '0.031', `12000` → '12,000'; a missing value has a word. */
export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return 'missing';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  const text =
    Number.isInteger(value) && size < 1e9
      ? value.toLocaleString('en')
      : size !== 0 && (size < 0.001 || size >= 1e6)
        ? value.toExponential(1)
        : value.toLocaleString('en', { maximumSignificantDigits: 3 });
  return text.replace(/^-/, '−');
}

/** `0.9312` → '93.1 %'. */
export function formatPercent(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return 'missing';
  return `${(100 * value).toLocaleString('en', { maximumFractionDigits: 1 })} %`.replace(/^-/, '−');
}

/** A value with its interval: '93.1 % (91 % to 95 %)'. */
export function formatInterval(
  value: number | null,
  low: number | null | undefined,
  high: number | null | undefined,
  format: (value: number | null) => string = formatNumber,
): string {
  const known = low !== null && low !== undefined && high !== null && high !== undefined;
  return known && value !== null ? `${format(value)} (${format(low)} to ${format(high)})` : format(value);
}

/** A step as short as it is on an axis: '12k'. */
export function formatStep(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6 && value % 1e5 === 0) return `${value / 1e6}M`;
  if (size >= 1e4 && value % 100 === 0) return `${value / 1e3}k`;
  return formatNumber(value);
}

/** A token as it can be seen: a line break is ↵, a space is ␣. */
export function showToken(text: string): string {
  if (text === ' ') return '␣';
  return text.replaceAll('\n', '↵').replaceAll('\t', '⇥');
}

/** A label in words: with the title of its axis, and with its place, counted from 0, where another has the same label: 'token a at 4'. */
export function nameLabel(labels: readonly string[], index: number, title = ''): string {
  const label = labels[index] ?? '';
  const named = title && !label.startsWith(title) ? `${title} ${showToken(label)}` : showToken(label);
  return labels.indexOf(label) === labels.lastIndexOf(label) ? named : `${named} at ${index}`;
}

/** Numbers of a text that was written for a terminal, as the page writes them: '−9.4 %', not '-9.4%'. */
export function asOnPage(text: string): string {
  return text.replaceAll(/(?<![\w.)\]])-(?=\d)/g, '−').replaceAll(/(?<=\d)%/g, ' %').replaceAll(/(?<![\d.])−0(?![\d.])/g, '0');
}

/** At most so many characters, with a mark where something was left out. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}
