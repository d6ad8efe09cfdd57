/** The state of the page as a readable address: `#/1/patch?run=binding-laptop&step=3700&program=a=5;b=a;!b:`.

The number after the first slash is the version of this format. Lines of a program are joined by `;`, and the query's `#` is
written `!`, so that an address can be read and typed. */
export const VERSION = 1;

export interface View {
  page: string;
  run: string;
  step: number | null; // null: the last one
  a: number | null; // the two pinned checkpoints
  b: number | null;
  program: string; // lines joined by line breaks; empty: the run's first example
  counterfactual: string;
  scale: 'log' | 'linear';
  options: Record<string, string>; // of pages: 'patch.metric' → 'success'
}

export const START: View = {
  page: 'start',
  run: '',
  step: null,
  a: null,
  b: null,
  program: '',
  counterfactual: '',
  scale: 'log',
  options: {},
};

/** The option that names the only panel to show, where the page stands in a frame of another one. */
export const ALONE = 'embed.panel';

const MAX_LENGTH = 20_000; // characters of an address that is read at all

export function viewToHash(view: View): string {
  const words: [string, string][] = [];
  if (view.run) words.push(['run', escape(view.run)]);
  for (const name of ['step', 'a', 'b'] as const) if (view[name] !== null) words.push([name, String(view[name])]);
  for (const name of ['program', 'counterfactual'] as const) if (view[name]) words.push([name, escapeProgram(view[name])]);
  if (view.scale !== START.scale) words.push(['scale', view.scale]);
  for (const name of Object.keys(view.options).sort()) words.push([escape(name).replaceAll('=', '%3D'), escape(view.options[name] ?? '')]);
  const query = words.map(([name, value]) => `${name}=${value}`).join('&');
  return `#/${VERSION}/${view.page}${query ? `?${query}` : ''}`;
}

/** Anything that cannot be read is left as it is at the start. */
export function hashToView(hash: string): View {
  const view: View = { ...START, options: {} };
  const match = matchHash(hash);
  if (!match || Number(match[1]) !== VERSION) return view;
  view.page = match[2] ?? START.page;
  for (const word of (match[3] ?? '').split('&').filter(Boolean)) {
    const [name, ...rest] = word.split('=');
    set(view, unescape(name ?? ''), rest.join('='));
  }
  return view;
}

/** Why an address was not read, in a sentence; empty for one that was, and for none at all. */
export function hashProblem(hash: string): string {
  if (hash === '' || hash === '#') return '';
  const version = matchHash(hash)?.[1];
  if (version === undefined) return 'This address cannot be read; this is the start instead.';
  if (Number(version) === VERSION) return '';
  return `This address is of version ${version}, and this page reads version ${VERSION}; this is the start instead.`;
}

function matchHash(hash: string): RegExpExecArray | null {
  return hash.length > MAX_LENGTH ? null : /^#\/(\d{1,4})\/([a-z0-9-]{1,40})(?:\?(.*))?$/s.exec(hash);
}

function set(view: View, name: string, value: string): void {
  if (name === 'run') view.run = unescape(value);
  else if (name === 'step' || name === 'a' || name === 'b') view[name] = /^\d{1,12}$/.test(value) ? Number(value) : null;
  else if (name === 'program' || name === 'counterfactual') view[name] = unescapeProgram(value);
  else if (name === 'scale') view.scale = value === 'linear' ? 'linear' : 'log';
  else if (name.includes('.')) view.options[name] = unescape(value);
}

/** Percent-encoding of only what would break the address: `=`, `;`, `!`, `:`, `,` and `@` stay readable. */
function escape(text: string): string {
  return encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, '\ufffd')).replaceAll(/%(3D|3B|21|3A|2C|40)/g, (code) => decodeURIComponent(code));
}

/** Line breaks become `;` and the query's sign `!`; those two characters themselves stay encoded. */
function escapeProgram(text: string): string {
  return escape(text).replaceAll(/[;!]|%0A|%23/g, (part) => PROGRAM_SIGNS[part] ?? part);
}

function unescapeProgram(text: string): string {
  return unescape(text.replaceAll(';', '%0A').replaceAll('!', '%23'));
}

const PROGRAM_SIGNS: Record<string, string> = { ';': '%3B', '!': '%21', '%0A': ';', '%23': '!' };

function unescape(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
