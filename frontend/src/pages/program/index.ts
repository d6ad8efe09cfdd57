import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'program',
  title: 'Program',
  order: 10,
  kind: 'programs',
  load: () => import('./Page.svelte'),
};
