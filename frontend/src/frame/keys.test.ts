import { expect, it } from 'vitest';
import type { PageEntry } from '../pages/page';
import { pageLetters } from './keys';

const page = (name: string, letter?: string): PageEntry => ({ name, title: name, order: 0, letter, load: () => Promise.reject(new Error('not here')) });

it('every page has a letter of its own, its wish before others take one', () => {
  const pages = [page('program'), page('patch'), page('path', 'p'), page('trajectory')];
  const letters = pageLetters(pages);
  expect(new Set(letters.values())).toEqual(new Set(pages));
  expect(letters.get('p')?.name).toBe('path');
  expect(letters.get('r')?.name).toBe('program');
  expect(letters.get('a')?.name).toBe('patch');
});
