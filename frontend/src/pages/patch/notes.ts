/** A reader's notes on parts and edges, as one text for the address: `L1.H0:copies the root;L0.H1>L2.H0.q:reads the name`. */
import type { Body } from '../../api/body';
import type { Loaded } from '../../state/load.svelte';

export const [MOST_NOTES, LONGEST] = [40, 100];
const KEY = /^[A-Za-z0-9_.]{1,20}(>[A-Za-z0-9_.]{1,20})?$/;

/** Notes by what they stand on; what cannot be read is left out. */
export function readNotes(text: string): Map<string, string> {
  const notes = new Map<string, string>();
  for (const part of text.split(';').slice(0, MOST_NOTES)) {
    const [key = '', ...rest] = part.split(':');
    const note = unescape(rest.join(':')).trim().slice(0, LONGEST);
    if (KEY.test(key) && note) notes.set(key, note);
  }
  return notes;
}

export function writeNotes(notes: ReadonlyMap<string, string>): string {
  return [...notes].map(([key, note]) => `${key}:${note.replaceAll('%', '%25').replaceAll(';', '%3B')}`).join(';');
}

/** The text with one note written, changed or, where it is empty, taken away. */
export function setNote(text: string, key: string, note: string): string {
  const notes = readNotes(text);
  if (note.trim()) notes.set(key, note.trim().slice(0, LONGEST));
  else notes.delete(key);
  return writeNotes(new Map([...notes].slice(0, MOST_NOTES)));
}

/** The body with the notes in it, so that tables and files have them too. */
export function withNotes(body: Body, notes: ReadonlyMap<string, string>): Body {
  if (!notes.size) return body;
  const along = (values: string[]) => ({ dims: ['note_on'], values, units: '' });
  return {
    ...body,
    sizes: { ...body.sizes, note_on: notes.size },
    coords: { ...body.coords, note_on: along([...notes.keys()]) },
    variables: { ...body.variables, note: along([...notes.values()]) },
  };
}

/** What a panel shows, with its notes. */
export function annotate(source: () => Loaded, notes: () => ReadonlyMap<string, string>): Loaded {
  return {
    get status() { return source().status; },
    get body() {
      const body = source().body;
      return body && withNotes(body, notes());
    },
    get error() { return source().error; },
    get final() { return source().final ?? false; },
    get missing() { return source().missing ?? null; },
    get refused() { return source().refused ?? false; },
    retry: () => source().retry(),
  }; // prettier-ignore
}

function unescape(text: string): string {
  return text.replaceAll('%3B', ';').replaceAll('%25', '%');
}
