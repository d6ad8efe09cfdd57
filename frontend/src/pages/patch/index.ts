import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'patch',
  title: 'Patch',
  order: 60,
  kind: 'programs',
  load: () => import('./Page.svelte'),
};
