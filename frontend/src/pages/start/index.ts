import type { PageEntry } from '../page';

export const page: PageEntry = { name: 'start', title: 'Start', order: 0, load: () => import('./Page.svelte') };
