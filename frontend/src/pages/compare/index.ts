import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'compare', title: 'Compare', order: 40, kind: 'programs', load: () => import('./Page.svelte'),
}; // prettier-ignore
