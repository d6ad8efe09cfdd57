/** What every chart over training has on this page. */
export interface Common {
  xTitle: string;
  log: boolean;
  cursor: number;
  onpick: (step: number) => void;
}
