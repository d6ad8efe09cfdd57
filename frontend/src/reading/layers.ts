/** Rows of a map the other way round, so that the last layer is on top, as the network is usually drawn. */
export function lastOnTop<T>(values: readonly T[], nColumns: number): T[] {
  const rows = Array.from({ length: values.length / nColumns }, (_, row) => values.slice(row * nColumns, (row + 1) * nColumns));
  return rows.reverse().flat();
}
