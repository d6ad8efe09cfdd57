import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'attention',
  title: 'Attention',
  order: 70,
  kind: 'programs',
  letter: 'a',
  load: () => import('./Page.svelte'),
};
