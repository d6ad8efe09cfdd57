/** One panel elsewhere: as a file that opens by itself, or as a frame that shows it of a copy of the site. */
import { escapeXml } from '../charts/svg';
import { showValue, type Table } from './table';

export interface Embedded {
  title: string;
  finding: string;
  svg: string; // the drawing, with its readings; empty where there is none
  provenance: string;
  command: string; // how to make it again
  table: Table | null; // the numbers
  paper: string; // colours, as the drawing has them
  ink: string;
}

/** A page without scripts and without anything to fetch. */
export function panelToHtml(panel: Embedded): string {
  const { title, finding, svg, provenance, command, table, paper, ink } = panel;
  const style =
    `body{background:${paper};color:${ink};font:15px/1.5 system-ui,sans-serif;margin:1rem}svg{height:auto;max-width:100%}h1{font-size:1.1rem;margin:0 0 .4rem}` +
    'figure{margin:0;overflow-x:auto}p{margin:.4rem 0}small,summary{opacity:.8}summary{cursor:pointer}td,th{padding:.1em .6em;text-align:left;vertical-align:top}td{min-width:4rem}.number{text-align:right}' +
    'table{border-collapse:collapse;font-variant-numeric:tabular-nums}caption{text-align:left}.scroll{max-height:24rem;overflow:auto}code{overflow-wrap:anywhere}';
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"><link rel="icon" href="data:,">`,
    `<title>${escapeXml(title)}</title><style>${style}</style></head><body><main>`,
    `<h1>${escapeXml(title)}</h1>`,
    finding ? `<p><strong>${escapeXml(finding)}</strong></p>` : '',
    svg ? `<figure>${svg.replace('<svg', `<svg role="img" aria-label="${escapeXml(title)}"`)}</figure>` : '',
    svg.includes('bindscope-reading') ? '<p><small>Point at the drawing to read it.</small></p>' : '',
    provenance ? `<p><small>${escapeXml(provenance)}</small></p>` : '',
    table ? `<details${svg ? '' : ' open'}><summary>The numbers</summary>${tableToHtml(table, title)}</details>` : '',
    command ? `<p><small>Made again by <code>${escapeXml(command)}</code></small></p>` : '',
    '</main></body></html>',
    '',
  ]
    .filter((line, index, all) => line || index === all.length - 1)
    .join('\n');
}

function tableToHtml({ name, headers, nHeaders, rows, note }: Table, title: string): string {
  const head = headers.map((header) => `<th scope="col">${escapeXml(header)}</th>`).join('');
  const body = rows.map((row) => {
    const cells = row.map((value, column) => (column < nHeaders ? `<th scope="row">${escapeXml(showValue(value))}</th>` : `<td${typeof value === 'number' ? ' class="number"' : ''}>${escapeXml(showValue(value))}</td>`));
    return `<tr>${cells.join('')}</tr>`;
  });
  const caption = escapeXml(`${title}: ${name}. ${note.replace(' The downloads hold all.', '')}`.trim());
  return `<div class="scroll" tabindex="0" role="region" aria-label="The numbers"><table><caption>${caption}</caption><thead><tr>${head}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`;
}

/** What a static copy is called in a frame's address where this page is none: a server is not shown in the frames of others. */
export const COPY = 'site/index.html';

/** The markup that shows one panel of a static copy; `page` is the copy's address, or what stands for it. */
export function frameMarkup(page: string, hash: string, title: string, height: number): string {
  return `<iframe src="${escapeXml(page + hash)}" title="${escapeXml(title)}" width="100%" height="${Math.round(height)}" style="border:0" loading="lazy"></iframe>`;
}
