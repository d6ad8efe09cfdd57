import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'arithmetic',
  title: 'Arithmetic',
  order: 85,
  kind: 'sums',
  letter: 'm',
  load: () => import('./Page.svelte'),
};
