import type { PageEntry } from '../page';

export const page: PageEntry = { name: 'class', title: 'Class', order: 95, ofLab: true, letter: 'x', load: () => import('./Page.svelte') };
