import type { PageEntry } from '../page';

export const page: PageEntry = { name: 'runs', title: 'Runs', order: 100, load: () => import('./Page.svelte') };
