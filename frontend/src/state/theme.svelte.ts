/** Light or dark: as the system says, unless the reader chose. Drawings that take colours from CSS read `theme.shown` to be drawn again. */
export type Theme = 'light' | 'dark';

const KEY = 'bindscope.theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

export const theme: { chosen: Theme | null; shown: Theme } = $state({ chosen: stored(), shown: 'light' });

/** Follow the system; call once, before anything is drawn. */
export function followSystem(): void {
  system.addEventListener('change', show);
  show();
}

export function toggleTheme(): void {
  theme.chosen = theme.shown === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(KEY, theme.chosen);
  } catch {
    // kept for this visit alone
  }
  show();
}

function show(): void {
  theme.shown = theme.chosen ?? (system.matches ? 'dark' : 'light');
  document.documentElement.dataset['theme'] = theme.shown;
}

function stored(): Theme | null {
  try {
    const found = localStorage.getItem(KEY);
    return found === 'light' || found === 'dark' ? found : null;
  } catch {
    return null;
  }
}
