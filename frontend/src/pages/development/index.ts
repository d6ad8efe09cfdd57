import type { PageEntry } from '../page';

export const page: PageEntry = { name: 'development', title: 'Development', order: 25, load: () => import('./Page.svelte') };
