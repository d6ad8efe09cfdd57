/** Light or dark: for drawings that cannot follow a style sheet by themselves. */
import { createSubscriber } from 'svelte/reactivity';
import { luminance } from './colour';

const follow = createSubscriber((update) => {
  const watcher = new MutationObserver(update);
  watcher.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class', 'style'] });
  const asked = window.matchMedia('(prefers-color-scheme: dark)');
  asked.addEventListener('change', update);
  return () => {
    watcher.disconnect();
    asked.removeEventListener('change', update);
  };
});

/** The colour of an element's text, read again whenever the theme changes: canvases draw with it. */
export function inkOf(element: Element): string {
  follow();
  return getComputedStyle(element).color;
}

/** Whether an element's text is light on dark. */
export function isDark(element: Element | undefined): boolean {
  return element ? luminance(inkOf(element)) > 0.35 : false;
}
