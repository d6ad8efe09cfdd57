/** What the charts take. A page builds these from a body; no chart knows where its numbers come from. */
import type { Limits, ScaleName } from './colour';

/** Heatmap.svelte */
export interface HeatmapProps {
  label: string; // what it shows, for those who hear it
  rows: string[];
  columns: string[];
  values: (number | null)[]; // row by row
  rowTitle?: string;
  columnTitle?: string;
  scale?: ScaleName;
  limits: Limits; // shown beside the legend, never taken from the data
  colourTitle?: string; // what the colours stand for
  format?: (value: number | null, row: number, column: number) => string; // for the readout
  marked?: ReadonlySet<string>; // cells 'row,column' drawn with a frame
  rowMarks?: ReadonlySet<number>; // rows or columns pointed out on their axis
  columnMarks?: ReadonlySet<number>;
  onpick?: (row: number, column: number, joined: boolean) => void; // click or Enter; joined with Shift
  joins?: boolean; // cells can be joined: by touch, a button says so
  onhover?: (row: number | null, column: number | null) => void;
  height?: number; // of the drawing in pixels; chosen from the number of rows when left out
  mask?: boolean; // leave missing cells blank instead of hatched
  plain?: boolean; // only the cells: for galleries of many small maps
  square?: boolean; // cells as high as they are wide
  text?: (row: number, column: number) => string; // written in each cell where there is room
  onclear?: () => void; // Esc
}

/** LineChart.svelte */
export interface Series {
  name: string;
  x: number[];
  y: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  colour?: string;
  dashed?: boolean;
  marked?: boolean; // a mark at every value, where each was measured by itself
  of?: string; // points to compare the series of this name with: hollow marks of its colour, shown and hidden with it
}
export interface Band {
  name: string;
  from: number;
  to: number;
  weight?: 'strong' | 'faint'; // not a phase: one that matters, or one without a name above it
}
export interface LineChartProps {
  label: string;
  series: Series[];
  xTitle: string;
  yTitle: string;
  yLimits?: Limits;
  xLimits?: Limits; // at least so far, where several charts are compared
  log?: boolean; // the x axis; 0 stands at its left end
  bands?: Band[]; // phases behind the curves
  cursor?: number | null; // a vertical line at this x
  references?: { y: number; name: string }[];
  percent?: boolean;
  onpick?: (x: number) => void; // the x nearest to where was clicked, or Enter
  height?: number;
  xFormat?: (x: number) => string; // for the readout
  yLog?: boolean; // the y axis; 0 stands at its lower end
  hidden?: ReadonlySet<string>; // series that are switched off, where the page keeps that
  ontoggle?: (name: string) => void;
}

/** BarChart.svelte: horizontal bars with intervals */
export interface Bar {
  label: string;
  value: number | null;
  low?: number | null;
  high?: number | null;
  n?: number | null;
  colour?: string;
  reference?: number | null; // a tick to compare with
}
export interface BarChartProps {
  label: string;
  bars: Bar[];
  limits: Limits;
  title?: string;
  percent?: boolean;
  onpick?: (index: number) => void;
  picked?: number | null;
}

/** Scatter.svelte */
export interface Point {
  x: number;
  y: number;
  group: string; // decides the colour
  name: string; // for the readout
}
export interface ScatterProps {
  label: string;
  points: Point[];
  xTitle: string;
  yTitle: string;
  xLimits: Limits; // held fixed while the slider moves
  yLimits: Limits;
  groups?: string[]; // the order of the colours
  picked?: number | null;
  highlighted?: ReadonlySet<number>;
  onpick?: (index: number) => void;
  height?: number;
}

/** Sankey.svelte: two columns, flows between them */
export interface Flow {
  from: string;
  to: string;
  amount: number;
}
export interface SankeyProps {
  label: string;
  flows: Flow[];
  fromTitle: string;
  toTitle: string;
  order?: readonly string[]; // of the nodes in both columns; as they first appear when left out
  unit?: string;
  height?: number;
}
