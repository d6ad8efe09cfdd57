import type { PageEntry } from '../page';

export const page: PageEntry = { name: 'trajectory', title: 'Trajectory', order: 20, load: () => import('./Page.svelte') };
