import type { PageEntry } from '../page';

export const page: PageEntry = { name: 'symbols', title: 'Symbols', order: 87, ofLab: true, letter: 'y', load: () => import('./Page.svelte') };
