import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'claims', title: 'Claims', order: 90, families: ['binding', 'assign_add', 'templates'], load: () => import('./Page.svelte'),
}; // prettier-ignore
