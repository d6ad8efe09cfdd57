/** Facts that the browser finds itself, in the form that panels show, list and download. */
import type { Body, Labelled, Value } from '../api/body';
import type { Loaded } from '../state/load.svelte';
import type { Program } from './program';

/** A program's lines over (line): what stands there, where its value comes from, what it holds. */
export function programToBody(program: Program, run: string): Body {
  const lines = program.assignments.map((_, index) => index + 1);
  const over = (values: Value[]): Labelled => ({ dims: ['line'], values, units: '' });
  return {
    title: 'Lines of a program',
    sizes: { line: program.nLines },
    coords: { line: over(lines) },
    variables: {
      variable: over(program.assignments.map((line) => line.variable)),
      source: over(program.assignments.map((line) => line.source)),
      reference: over([...program.references]),
      value: over([...program.values]),
      depth: over([...program.depths]),
      on_chain: over(lines.map((line) => program.chain.includes(line))),
    },
    attrs: { answer: program.answer, depth: program.depth, root_line: program.rootLine },
    provenance: { run, step: null, n: 1, seed: null, interval: '', note: 'read in the browser' },
    command: '',
    python: `from bindscope.tasks.binding import parse_program

program = parse_program("${program.text.replaceAll('\n', '\\n')}", reassignment=True)
print(program.chain, program.values, program.answer)`,
  };
}

/** Something that is there already, for a panel. */
export function loaded(body: () => Body | null): Loaded {
  return {
    get status() {
      return body() ? 'ready' : 'empty';
    },
    get body() {
      return body();
    },
    error: '',
    retry: () => undefined,
  };
}
