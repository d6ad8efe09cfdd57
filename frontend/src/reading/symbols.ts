/** Curves of study 3 from the rows of `symbols/curves/NAME.json`: one row for each model and n, width or other setting. */
import type { Body, Value } from '../api/body';
import { seriesColour } from '../charts/colour';
import type { Series } from '../charts/types';

/** Every model that is trained: what it is called, and which of the eight colours it has; no two of one task share both colour and mark. */
export const MODELS: Record<string, { name: string; colour: number }> = {
  plain: { name: 'transformer', colour: 0 },
  both: { name: 'both scalings', colour: 1 },
  kq: { name: 'KQ scaling', colour: 2 },
  vo: { name: 'VO scaling', colour: 3 },
  'relation-mlp': { name: 'MLP with XXᵀ', colour: 4 },
  mimetic: { name: 'mimetic start', colour: 5 },
  'last-layer': { name: 'last layer only', colour: 6 },
  'one-hot-mlp': { name: 'one-hot MLP', colour: 7 },
  'embedding-mlp': { name: 'embedding MLP', colour: 7 },
  rnn: { name: 'RNN', colour: 4 },
  lstm: { name: 'LSTM', colour: 5 },
  scratch: { name: 'from scratch', colour: 0 },
  'torch-start': { name: 'from scratch, started as the others', colour: 2 },
  pretrained: { name: 'pretrained', colour: 1 },
};
const ORDER = Object.keys(MODELS);

export interface Row {
  model: string;
  n: number;
  heads: number;
  width: number | null;
  setting: string;
  task: string;
  value: number | null;
  mean: number | null;
  low: number | null;
  high: number | null;
  seeds: number;
}

export interface Published {
  model: string;
  n: number;
  width: number | null;
  value: number;
}

/** `nameModel('both')` is 'both scalings'; a model that nobody has named here keeps its own name. */
export function nameModel(model: string): string {
  return MODELS[model]?.name ?? model;
}

export function rowsOf(body: Body): Row[] {
  const column = columnsOf(body);
  return column('mean').map((mean, index) => ({
    model: String(column('model')[index]),
    n: Number(column('n')[index]),
    heads: Number(column('heads')[index] ?? 0),
    width: asNumber(column('width')[index]),
    setting: String(column('setting')[index] ?? ''),
    task: String(column('task')[index] ?? ''),
    value: asNumber(column('value')[index]),
    mean: asNumber(mean),
    low: asNumber(column('low')[index]),
    high: asNumber(column('high')[index]),
    seeds: Number(column('seeds')[index] ?? 0),
  }));
}

export function publishedOf(body: Body): Published[] {
  const column = columnsOf(body);
  return column('paper_value').map((value, index) => ({
    model: String(column('paper_model')[index]),
    n: Number(column('paper_n')[index]),
    width: asNumber(column('paper_width')[index]),
    value: Number(value),
  }));
}

/** Curves over n, one for each model and number of heads, and the paper's points for the models that are shown. */
export function curvesOverN(body: Body, paper: boolean): Series[] {
  const rows = rowsOf(body);
  const fewest = Math.min(...rows.map((row) => row.heads));
  const groups = groupBy(rows, (row) => `${row.model} ${isBaseline(row.model) || row.heads === fewest ? '' : row.heads}`);
  const series = [...groups].map(([key, members]) => {
    const [model = '', heads = ''] = key.split(' ');
    const name = heads ? `${nameModel(model)}, ${heads} heads` : nameModel(model);
    return { model, series: { ...overOf(members, (row) => row.n), name, marked: true, dashed: heads !== '' || model === 'one-hot-mlp', colour: colourOf(model) } };
  });
  series.sort((one, other) => order(one.model) - order(other.model));
  const points = paper ? [...groupBy(publishedOf(body), (point) => point.model)].map(([model, members]) => pointsOf(members, (point) => point.n, model)) : [];
  const own = series.map((one) => one.series);
  return [...own, ...points.filter((point) => own.some(({ name }) => name === point.of))];
}

/** Error over n, one curve for each width, of one model. */
export function curvesOfWidths(body: Body, model: string): Series[] {
  const rows = rowsOf(body).filter((row) => row.model === model && row.width !== null && row.heads === Math.min(...rowsOf(body).map((other) => other.heads)));
  const groups = [...groupBy(rows, (row) => String(row.width))].sort(([one], [other]) => Number(one) - Number(other));
  return groups.map(([width, members]) => ({ ...overOf(members, (row) => row.n), name: `width ${width}`, marked: true }));
}

/** Loss over n, one curve for each task, of one model. */
export function curvesOfTasks(body: Body, model: string): Series[] {
  const groups = groupBy(rowsOf(body).filter((row) => row.model === model), (row) => row.task);
  return [...groups].map(([name, members], index) => ({ ...overOf(members, (row) => row.n), name, marked: true, dashed: index > 7 }));
}

/** The models of an experiment, in their usual order. */
export function modelsOf(body: Body): string[] {
  return [...new Set(rowsOf(body).map((row) => row.model))].sort((one, other) => order(one) - order(other));
}

/** The first n that is solved, over widths, of each model, with the paper's. */
export function firstSolved(body: Body, paper: boolean): Series[] {
  const column = columnsOf(body);
  const rows = column('solved_model').map((model, index) => ({ model: String(model), width: Number(column('solved_width')[index]), n: asNumber(column('solved_n')[index]) }));
  const own = [...groupBy(rows, (row) => row.model)].map(([model, members]) => ({
    name: nameModel(model), x: members.map((row) => row.width), y: members.map((row) => row.n), marked: true, colour: colourOf(model),
  })); // prettier-ignore
  const points = [...groupBy(publishedOf(body), (point) => point.model)].map(([model, members]) => pointsOf(members.map((point) => ({ ...point, value: point.n })), (point) => point.width ?? 0, model));
  return [...own, ...(paper ? points : [])];
}

/** Widths that no trained n solves, with the largest that was tried. */
export function unsolved(body: Body): { model: string; width: number; most: number }[] {
  const column = columnsOf(body);
  return column('solved_model').flatMap((model, index) =>
    asNumber(column('solved_n')[index]) === null ? [{ model: nameModel(String(model)), width: Number(column('solved_width')[index]), most: Number(column('solved_most')[index]) }] : [],
  );
}

/** Loss over widths, one curve for each n, with the paper's points, which are at another n. */
export function curvesOverWidth(body: Body, paper: boolean): Series[] {
  const groups = [...groupBy(rowsOf(body), (row) => `n = ${row.n.toLocaleString('en')}`)];
  const own = groups.map(([name, members]) => ({ ...overOf(members, (row) => row.width ?? 0), name, marked: true }));
  const first = own[0]?.name;
  const points = publishedOf(body);
  if (!paper || !first || !points.length) return own;
  return [...own, { name: `the paper, n = ${points[0]!.n.toLocaleString('en')}`, of: first, x: points.map((point) => point.width ?? 0), y: points.map((point) => point.value) }];
}

/** One setting's values: a curve for each model, which has its own n. */
export function curvesOfSetting(body: Body, setting: string): Series[] {
  const groups = groupBy(rowsOf(body).filter((row) => row.setting === setting), (row) => `${row.model} ${row.n}`);
  return [...groups].map(([key, members]) => {
    const [model = '', n = ''] = key.split(' ');
    return { ...overOf(members, (row) => row.value ?? 0), name: `${nameModel(model)}, n = ${n}`, marked: true, colour: colourOf(model) };
  });
}

export function settingsOf(body: Body): string[] {
  return [...new Set(rowsOf(body).map((row) => row.setting).filter(Boolean))];
}

/** What is switched off once one more is, or one less: `toggled(new Set(['RNN']), 'LSTM')` is 'LSTM,RNN'. */
export function toggled(names: ReadonlySet<string>, name: string): string {
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return [...next].sort().join(',');
}

function overOf(rows: Row[], x: (row: Row) => number): Omit<Series, 'name'> {
  const sorted = rows.toSorted((one, other) => x(one) - x(other));
  return { x: sorted.map(x), y: sorted.map((row) => row.mean), low: sorted.map((row) => row.low), high: sorted.map((row) => row.high) };
}

function pointsOf(points: Published[], x: (point: Published) => number, model: string): Series {
  return { name: `the paper's ${nameModel(model)}`, of: nameModel(model), x: points.map(x), y: points.map((point) => point.value) };
}

function colourOf(model: string): string {
  return seriesColour(MODELS[model]?.colour ?? order(model));
}

function order(model: string): number {
  const index = ORDER.indexOf(model);
  return index < 0 ? ORDER.length : index;
}

function isBaseline(model: string): boolean {
  return /mlp|rnn|lstm/.test(model);
}

function columnsOf(body: Body): (name: string) => Value[] {
  return (name) => ((body.variables[name] ?? body.coords[name])?.values ?? []) as Value[];
}

function asNumber(value: Value | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return groups;
}

/** From 0 to a little above the highest mean: the interval of two seeds is wide, and what lies outside is cut. */
export function highestMean(series: readonly Series[]): [number, number] {
  return [0, 1.1 * Math.max(1.1, ...series.flatMap(({ y }) => y).map((value) => value ?? 0))];
}
