import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'subspace',
  title: 'Subspace',
  order: 80,
  kind: 'programs',
  load: () => import('./Page.svelte'),
};
