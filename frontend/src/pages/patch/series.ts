/** Series of patch grids as `grid-series.json` lists them: which there are, and which of their steps are measured. */
import { labelsOf, pick, type Body } from '../../api/body';
import { nearestIndex } from '../../charts/nearest';
import { knownMetric, type Metric } from './metrics';

export interface Listed {
  name: string;
  title: string;
  n: number; // pairs
  metrics: Metric[];
  steps: number[]; // measured so far
  of: number; // steps there are
}

/** Every series, in words. */
export function listSeries(body: Body): Listed[] {
  const steps = labelsOf(body, 'step').map(Number);
  return labelsOf(body, 'series').map((name) => {
    const [grid, metric, direction, n] = ['grid', 'metric', 'direction', 'n'].map((each) => pick(body, each, { series: name })[0]);
    const measured = pick(body, 'measured', { series: name });
    return {
      name: String(name),
      title: `${grid === 'residual' ? 'residual stream' : grid}, ${Number(n).toLocaleString('en')} pairs, ${direction}`,
      n: Number(n),
      metrics: ['success', knownMetric(String(metric))],
      steps: steps.filter((_, index) => measured[index]),
      of: steps.length,
    };
  });
}

/** The address of a step's means, or of one of its pairs; null while nothing is measured. */
export function pathOf(run: string, series: Listed | undefined, step: number, pair: number | null): string | null {
  if (!series?.steps.length) return null;
  const at = `runs/${run}/grid-series/${series.name}/${series.steps[nearestIndex(series.steps, step)]}`;
  return pair === null ? `${at}.json` : `${at}/${pair}.json`;
}

/** Which pair a reader means; null for the mean over all. */
export function readPair(text: string, n: number): number | null {
  return /^\d+$/.test(text) && Number(text) < n ? Number(text) : null;
}
