/** Handing one panel over: as a file that opens by itself, or as markup for a page that shows it of a static copy. */
import { partOf, type Body, type Shown } from '../api/body';
import { ALONE, viewToHash } from '../state/hash';
import { currentRun, currentStep, lab, view } from '../state/view.svelte';
import { drawingOf, type Drawings } from './drawing';
import { COPY, frameMarkup, panelToHtml, type Embedded } from './embed';
import { showPart } from './provenance';
import { copyText, saveFile } from './save';
import { tableOf, tablesOf, type Table } from './table';

type Said = Pick<Embedded, 'title' | 'finding' | 'command'>;

/** Saves the panel as one HTML file; gives what was done. */
export function saveAlone(file: string, drawing: HTMLElement, given: Drawings, said: Said, body: Body | null, shown: Shown | undefined): string {
  const svg = drawingOf(drawing, given, true) ?? '';
  if (!svg && !body) return 'Not saved: nothing is drawn yet';
  const paper = getComputedStyle(document.documentElement).getPropertyValue('--panel').trim();
  const look = { paper, ink: getComputedStyle(drawing).color };
  saveFile(`${file}.html`, panelToHtml({ ...said, ...look, svg, provenance: body ? showPart(body, shown) : '', table: numbersOf(body, shown) }), 'text/html');
  return `Saved ${file}.html`;
}

function numbersOf(body: Body | null, shown: Shown | undefined): Table | null {
  if (!body) return null;
  const part = shown ? partOf(body, shown) : body;
  const [first] = tablesOf(part);
  return first === undefined ? null : tableOf(part, first);
}

/** Copies an `<iframe>` of this panel; gives what was done. */
export async function copyFrame(panel: HTMLElement, title: string): Promise<string> {
  const run = currentRun();
  const exact = { ...view, run: run?.name ?? '', step: run?.steps.length ? currentStep() : null, options: { ...view.options, [ALONE]: title } };
  const page = lab.live ? COPY : location.href.replace(/#.*$/s, '');
  if (!(await copyText(frameMarkup(page, viewToHash(exact), title, panel.offsetHeight), panel))) return 'The browser did not allow copying';
  return lab.live ? `Copied; ${COPY} is a copy made by 'bindscope export site'` : 'Copied';
}
