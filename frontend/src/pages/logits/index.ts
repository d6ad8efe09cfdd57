import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'logits',
  title: 'Logits',
  order: 50,
  kind: 'programs',
  load: () => import('./Page.svelte'),
};
