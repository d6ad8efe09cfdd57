/** How a person would find the answer: from the query down the chain to the constant, one sentence a step. */
import type { Program } from './program';

export interface Step {
  line: number; // where to look; the query's line is the last of the program
  sentence: string;
}

/** The query, each line of its chain, and the answer: `depth + 1` steps. */
export function dereference(program: Program): Step[] {
  const asked: Step = { line: program.nLines + 1, sentence: `The query asks what '${program.query}' holds.` };
  const hops = program.chain.map((line, index): Step => {
    const { variable, source } = program.assignments[line - 1] ?? { variable: '', source: '' };
    const found = `Line ${line} gives '${variable}' its value`;
    if (line !== program.rootLine) return { line, sentence: `${found}: whatever '${source}' holds there. Look for '${source}'.` };
    const hopping = index === 0 ? 'no reference to follow' : `${index} reference${index === 1 ? '' : 's'} followed`;
    return { line, sentence: `${found}: the constant ${source}. The answer is ${program.answer}, with ${hopping}.` };
  });
  return [asked, ...hops];
}
