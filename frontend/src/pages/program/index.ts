import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'program',
  title: 'Program',
  order: 10,
  families: ['binding'],
  load: () => import('./Page.svelte'),
};
