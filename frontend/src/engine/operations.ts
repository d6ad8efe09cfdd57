/** What the browser can answer by itself, and the command for what it cannot. */
export const OPERATIONS: ReadonlySet<string> = new Set(['predict', 'lens', 'attention', 'ablate', 'patch', 'grid', 'sum', 'transplant', 'kernel', 'samples']);

/** The command that does the same on the reader's own machine. */
export function commandFor(operation: string, question: object): string {
  const { run = '', step, depth } = question as { run?: string; step?: number; depth?: number | null };
  if (operation === 'sample') return `bindscope sample ${run}${depth == null ? '' : ` --depth ${depth}`}`;
  if (operation === 'project' || operation === 'swap') {
    return `bindscope subspace ${run}${step === undefined ? '' : ` --step ${step}`}`;
  }
  return `bindscope serve ${run}`;
}
