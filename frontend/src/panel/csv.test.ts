import { describe, expect, it } from 'vitest';
import { partOf, type Body, type Value } from '../api/body';
import { bodyToCsv, quote } from './csv';
import { MAX_ROWS, showValue, tableOf, tablesOf } from './table';

const BODY: Body = {
  title: 'two arrays',
  sizes: { layer: 2, position: 3, step: 2 },
  coords: {
    layer: { dims: ['layer'], values: ['L0', 'L1'], units: '' },
    token: { dims: ['position'], values: ['a', ',', 'say "5"\n'], units: '' },
    step: { dims: ['step'], values: [0, 100], units: '' },
  },
  variables: {
    success: { dims: ['layer', 'position'], values: [0, 0.5, 1, null, 0.25, 0.75], units: 'fraction' },
    loss: { dims: ['step'], values: [2.5, 1.25], units: 'nat' },
    accuracy: { dims: ['step'], values: [0.1, 0.9], units: '' },
    total: { dims: [], values: [7], units: '' },
  },
  attrs: {},
  provenance: { run: 'r', step: null, n: null, seed: null, interval: '', note: '' },
  command: '',
  python: '',
};

/** An independent reader of RFC 4180: one character at a time. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  let field = '';
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? '';
    if (quoted && character === '"' && text[index + 1] === '"') {
      field += '"';
      index += 1;
    } else if (character === '"') quoted = !quoted;
    else if (!quoted && (character === ',' || character === '\r')) {
      rows.at(-1)?.push(field);
      field = '';
      if (character === '\r') {
        index += 1;
        rows.push([]);
      }
    } else field += character;
  }
  return rows.slice(0, -1);
}

describe('a body as CSV', () => {
  const written = bodyToCsv(BODY);
  const rows = parseCsv(written.slice(written.indexOf('variable,')));

  it('has one row for each cell of each variable, and all rows are equally long', () => {
    const cells = Object.values(BODY.variables).reduce((sum, array) => sum + array.values.length, 0);
    expect(rows.length).toBe(1 + cells);
    expect(new Set(rows.map((row) => row.length))).toEqual(new Set([6]));
    expect(rows[0]).toEqual(['variable', 'layer', 'position', 'step', 'token', 'value']);
  });
  it('labels each cell by its coordinates, the last axis fastest, missing values empty', () => {
    expect(rows[3]).toEqual(['success', 'L0', '2', '', 'say "5"\n', '1']);
    expect(rows[4]).toEqual(['success', 'L1', '0', '', 'a', '']);
    expect(rows[8]).toEqual(['loss', '', '', '100', '', '1.25']);
    expect(rows.at(-1)).toEqual(['total', '', '', '', '', '7']);
  });
  it('says first where its numbers come from', () => {
    expect(written.split('\r\n').slice(0, 3)).toEqual(['# two arrays', '# r', '# everything that was measured']);
    expect(quote('a=5;#a:')).toBe('"a=5;#a:"'); // not a comment
  });
  it('holds what a panel shows alone: a measure with its interval at one step, a column each', () => {
    const shown = { ...BODY, variables: { success: { dims: ['step', 'layer'], values: [1, 2, 3, 4], units: '' }, success_low: { dims: ['step', 'layer'], values: [5, 6, 7, 8], units: '' }, n: { dims: ['layer'], values: [9, 10], units: '' } } };
    const lines = bodyToCsv(shown, 'A grid', { variables: ['success', 'n'], at: { step: 100, direction: undefined } }).trimEnd().split('\r\n');
    expect(lines).toEqual(['# A grid', '# r', '# shown: success, n; step 100', 'layer,success,success_low,n', 'L0,3,7,9', 'L1,4,8,10']);
  });
  it('holds only the rows that a coordinate names', () => {
    const part = partOf(BODY, { variables: ['success'], at: { token: ['a', ','], layer: 'L1' } });
    expect(part.variables['success']).toEqual({ dims: ['position'], values: [null, 0.25], units: 'fraction' });
    expect(part.coords['token']?.values).toEqual(['a', ',']);
    expect(partOf(BODY, { variables: ['success'], at: { layer: 'L9' } }).variables['success']).toEqual(BODY.variables['success']); // no such label
  });
  it('can be read back whatever a field holds', () => {
    for (const text of ['a', 'a,b', '"', '""', 'line\nbreak', 'r\r\nn', ' edges ', '\t', '', 'a=5;#a:']) {
      expect(parseCsv(`${quote(text)},end\r\n`)).toEqual([[text, 'end']]);
    }
    expect(quote(null)).toBe('');
    expect(quote(false)).toBe('false');
  });
});

describe('a body as tables', () => {
  it('offers each variable with several axes alone, and those along one axis together', () => {
    expect(tablesOf(BODY)).toEqual(['success', 'loss, accuracy', 'total']);
  });
  it('puts the first axes down and the last across', () => {
    const table = tableOf(BODY, 'success');
    expect(table.headers).toEqual(['layer', 'position 0', 'position 1', 'position 2']);
    expect(table.rows).toEqual([
      ['L0', 0, 0.5, 1],
      ['L1', null, 0.25, 0.75],
    ]);
    expect(table.nHeaders).toBe(1);
  });
  it('joins what lies along one axis', () => {
    const table = tableOf(BODY, 'loss, accuracy');
    expect(table.headers).toEqual(['step', 'loss (nat)', 'accuracy']);
    expect(table.rows[1]).toEqual([100, 1.25, 0.9]);
    expect(tableOf(BODY, 'total').rows).toEqual([[7]]);
    expect(tableOf(BODY, 'unknown').rows).toEqual([]);
  });
  it('is bounded, and says what was left out', () => {
    const n = MAX_ROWS + 1;
    const long: Body = { ...BODY, sizes: { i: n }, coords: {}, variables: { x: { dims: ['i'], values: Array<Value>(n).fill(1), units: '' } } };
    const table = tableOf(long, 'x');
    expect(table.rows.length).toBe(MAX_ROWS);
    expect(table.note).toContain('501');
    expect(tableOf(BODY, 'success').note).toBe('');
  });
  it('shows numbers with as many digits as help', () => {
    expect([null, 3, 0.12345, 12.3456, 0.00001, true].map(showValue)).toEqual(['–', '3', '0.1235', '12.346', '1.00e-5', 'true']);
  });
});
