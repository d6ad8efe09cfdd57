import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'attention',
  title: 'Attention',
  order: 70,
  families: ['binding'],
  load: () => import('./Page.svelte'),
};
