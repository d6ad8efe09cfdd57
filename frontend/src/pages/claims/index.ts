import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'claims', title: 'Claims', order: 90, kind: 'claims', load: () => import('./Page.svelte'),
}; // prettier-ignore
