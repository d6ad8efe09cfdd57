/** How a panel gets the drawing inside it as SVG: a chart offers it, the panel around it takes it when the reader wants a file. */
import { getContext, onDestroy, setContext } from 'svelte';

type Draw = () => string;
const KEY = Symbol('drawing');

/** For a chart, while it starts: `provideDrawing(() => '<svg …>')`. */
export function provideDrawing(draw: Draw): void {
  const offered = getContext<Set<Draw> | undefined>(KEY);
  offered?.add(draw);
  onDestroy(() => offered?.delete(draw));
}

/** For a panel, while it starts: every drawing offered inside it, in the order they came. */
export function collectDrawings(): ReadonlySet<Draw> {
  return setContext(KEY, new Set<Draw>());
}
