/** A page is one folder with an `index.ts` that says its name and its place; it is loaded when it is first opened. */
import type { Component } from 'svelte';
import type { RunSummary } from '../api/client';

export interface PageEntry {
  name: string; // in the address
  title: string;
  order: number; // in the menu
  kind?: string; // what the runs it is about can be asked, as the server says of each: 'programs', 'sums', 'claims'; all when left out
  ofLab?: boolean; // it is about no run: there is none to choose at the top, and no checkpoint
  letter?: string; // opens it after g; the first free letter of its name when left out
  load: () => Promise<{ default: Component }>;
}

/** Whether a page has something to show of a run. */
export function isAbout(page: PageEntry | null | undefined, run: RunSummary): boolean {
  return !page?.kind || run.kinds.includes(page.kind);
}

const found = import.meta.glob<{ page: PageEntry }>('./*/index.ts', { eager: true });

/** Every page, in the order of the menu. */
export const PAGES: PageEntry[] = Object.values(found)
  .map((module) => module.page)
  .sort((first, second) => first.order - second.order);
