/** The settings of runs, as dotted names that `--set` takes, side by side. */

/** One setting of one or two runs; missing where a run has no such setting. */
export interface Setting {
  name: string;
  value: string | undefined;
  other: string | undefined;
  differs: boolean;
}

/** Nested settings as dotted names: `{task: {lines: 6}}` → `task.lines` is `6`. */
export function flatten(config: Record<string, unknown>, prefix = ''): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(config)) {
    if (isNested(value)) for (const [name, text] of flatten(value, `${prefix}${key}.`)) found.set(name, text);
    else found.set(`${prefix}${key}`, showValue(value));
  }
  return found;
}

/** Every setting of one run, beside that of another where there is one; in the order of the first, then what only the other has. */
export function compare(config: Record<string, unknown>, other: Record<string, unknown> | null): Setting[] {
  const own = flatten(config);
  const theirs = other && flatten(other);
  const names = [...own.keys(), ...[...(theirs?.keys() ?? [])].filter((name) => !own.has(name))];
  return names.map((name) => {
    const [value, beside] = [own.get(name), theirs?.get(name)];
    return { name, value, other: beside, differs: theirs !== null && value !== beside };
  });
}

export function showValue(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  if (Array.isArray(value)) return value.length ? value.map(showValue).join(', ') : '()';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** `13458016` → `13.5 MB` */
export function showSize(bytes: number): string {
  const [unit, size] = bytes >= 1e9 ? ['GB', 1e9] : bytes >= 1e6 ? ['MB', 1e6] : ['kB', 1e3];
  return `${(bytes / Number(size)).toFixed(1)} ${unit}`;
}

/** `255208` → `255k` */
export function showCount(n: number): string {
  if (n >= 1e6) return `${(n / 1e6).toFixed(n >= 1e7 ? 0 : 1)}M`;
  return n >= 1e3 ? `${(n / 1e3).toFixed(n >= 1e4 ? 0 : 1)}k` : String(n);
}

function isNested(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
}

/** `736` → `12 min` */
export function showDuration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  return seconds < 48 * 3600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}
