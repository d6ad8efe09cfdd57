/** What all charts of the page share: its axis of steps, its phases and its cursor. */
import type { LineChartProps } from '../../charts/types';

export type Common = Pick<LineChartProps, 'xTitle' | 'log' | 'bands' | 'cursor' | 'onpick'>;
