import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'checkpoint', title: 'Checkpoint', order: 30, families: ['binding'], load: () => import('./Page.svelte'),
}; // prettier-ignore
