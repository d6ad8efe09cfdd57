/** Labels of arrows that would lie on each other, moved apart. */

export interface Label {
  key: string;
  text: string;
  x: number; // its middle
  y: number;
}

const [CHARACTER, LINE] = [5.9, 11]; // of bold letters of 10 pixels
const TRIES = 4;

/** The same labels; one that would touch an earlier one goes up, line by line, as far as it takes. */
export function keepApart(labels: readonly Label[]): Label[] {
  const placed: Label[] = [];
  for (const label of labels) {
    const free = Array.from({ length: TRIES }, (_, line) => ({ ...label, y: label.y - LINE * line })).find((one) => !placed.some((other) => touch(one, other)));
    placed.push(free ?? label);
  }
  return placed;
}

function touch(one: Label, other: Label): boolean {
  return Math.abs(one.x - other.x) < (CHARACTER * (one.text.length + other.text.length)) / 2 + 4 && Math.abs(one.y - other.y) < LINE;
}
