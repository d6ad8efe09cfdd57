/** How much room charts have: usually their own height, more in a panel that fills the window, and exactly their own on paper. */
import { getContext, setContext } from 'svelte';
import { innerHeight } from 'svelte/reactivity/window';
import { magnification } from './magnify.svelte';

const KEY = 'room for charts';
const AROUND = 280; // pixels for title, choices, what is told and the readout
export type Room = 'usual' | 'window' | 'paper';
interface Offer {
  room: () => Room;
  charts: () => number;
}

/** For the panel: where its charts are drawn, and how many share the room. */
export function offerRoom(room: () => Room, charts: () => number = () => 1): void {
  setContext<Offer>(KEY, { room, charts });
}

/** For a chart, while it starts: `height(280)` is what it may take instead of its usual 280 pixels. */
export function roomForChart(): { height: (usual: number) => number; onPaper: () => boolean; large: () => boolean } {
  const offer = getContext<Offer | undefined>(KEY);
  const large = (): boolean => offer?.room() === 'window';
  return {
    large,
    onPaper: () => offer?.room() === 'paper',
    height: (usual) => (large() ? roomier(usual, (innerHeight.current ?? 0) / magnification(), offer?.charts() ?? 1) : usual),
  };
}

/** One chart takes the window's height, several take half of it each; never less than usual. */
export function roomier(usual: number, window: number, charts: number): number {
  return Math.max(usual, Math.round((window - AROUND) / (charts > 1 ? 2 : 1)));
}
