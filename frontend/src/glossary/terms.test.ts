import { describe, expect, it } from 'vitest';
import { explain, TERMS } from './terms';

const USED = import.meta.glob<string>('../**/*.svelte', { query: '?raw', import: 'default', eager: true });

describe('the glossary', () => {
  it('explains every word that a page asks it for', () => {
    for (const [file, text] of Object.entries(USED)) {
      for (const [, name] of text.matchAll(/<Term name="([^"]+)"/g)) expect(explain(name ?? ''), `${name} in ${file}`).not.toBe('');
      for (const [, name] of text.matchAll(/<Panel\b[^>]*?\bterm="([^"]+)"/g)) expect(explain(name ?? ''), `${name} in ${file}`).not.toBe('');
    }
    expect(Object.keys(USED).length).toBeGreaterThan(5);
  });
  it('finds a word whatever its case, and nothing for an unknown one', () => {
    expect(explain('Logit Lens')).toBe(TERMS['logit lens']);
    expect(explain('no such word')).toBe('');
  });
});
