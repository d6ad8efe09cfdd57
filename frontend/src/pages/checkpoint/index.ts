import type { PageEntry } from '../page';

export const page: PageEntry = {
  name: 'checkpoint', title: 'Checkpoint', order: 30, kind: 'programs', load: () => import('./Page.svelte'),
}; // prettier-ignore
