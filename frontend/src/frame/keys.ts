/** Keys that work everywhere on the page. */
import type { PageEntry } from '../pages/page';

/** The letter that opens each page after g: its own wish, or the first letter of its name that is still free. */
export function pageLetters(pages: readonly PageEntry[]): Map<string, PageEntry> {
  const letters = new Map<string, PageEntry>();
  for (const page of pages) if (page.letter && !letters.has(page.letter)) letters.set(page.letter, page);
  for (const page of pages) {
    if ([...letters.values()].includes(page)) continue;
    const free = [...page.name].find((letter) => /[a-z]/.test(letter) && !letters.has(letter));
    if (free) letters.set(free, page);
  }
  return letters;
}

/** Whether a key pressed here is meant for what has the focus, not for the page. */
export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return true;
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches('textarea, select, input:not([type=checkbox], [type=radio], [type=button])');
}

export const SHORTCUTS: [string[], string][] = [
  [['←', '→'], 'one checkpoint earlier or later'],
  [['Shift ←', 'Shift →'], 'five checkpoints'],
  [['Home', 'End'], 'first or last checkpoint (on the slider)'],
  [['p'], 'play or pause'],
  [['a', 'b'], 'pin this checkpoint as A or B; again to take the pin off'],
  [['l'], 'logarithmic or linear steps'],
  [['d'], 'light or dark'],
  [['n', 'Shift N'], 'on the tour: next or previous stop'],
  [['?'], 'this list'],
  [['Esc'], 'close what is open'],
];
