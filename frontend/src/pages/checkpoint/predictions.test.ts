import { describe, expect, it } from 'vitest';
import { madePredictions } from './made';
import { cellsOf, orderPrograms, readPredictions, settledAt, mostUndecided, tell, tellingProgram, usualProgram } from './predictions';

//                                      step 0         step 100     step 200
const body = madePredictions([4, 4, 1, -1, /**/ 4, 7, 1, 5, /**/ 4, 7, 1, 5]);
const predictions = readPredictions(body);

describe('predictions', () => {
  it('reads who said what when', () => {
    expect(predictions.steps).toEqual([0, 100, 200]);
    expect(predictions.nLines).toBe(3);
    expect(predictions.said(0, 1)).toEqual({ digit: 4, source: 1, probability: 1 / 12, line1: 0.25, right: false });
    expect(predictions.said(1, 1).right).toBe(true);
    expect(tell(predictions.said(0, 3))).toBe('says no digit');
    expect(tell(predictions.said(2, 0))).toBe('says 4 (from line 1): right');
  });
  it('finds the step from which a program stays right', () => {
    expect([0, 1, 2, 3].map((program) => settledAt(predictions, program))).toEqual([0, 1, 3, 1]);
  });
  it('does not count a lucky answer that is lost again', () => {
    expect(settledAt(readPredictions(madePredictions([4, 7, 3, 5, 0, 0, 0, 0, 4, 0, 0, 0])), 0)).toBe(2);
  });
  it('begins with a program that line 1 does not answer', () => {
    expect(usualProgram(predictions)?.index).toBe(1);
    expect(usualProgram({ ...predictions, programs: predictions.programs.slice(0, 1) })?.index).toBe(0);
    expect(usualProgram({ ...predictions, programs: [] })).toBe(null);
  });
  it('finds the program that was fooled by line 1 and no more', () => {
    expect(tellingProgram(predictions, 0)?.index).toBe(1); // says 4, then 7
    expect(tellingProgram(predictions, 100)).toBe(null); // program 2 says line 1 to the end
    expect(tellingProgram(predictions, 50)).toBe(null);
  });
  it('finds the step that leaves most to explain', () => {
    expect(mostUndecided(predictions, 'right')).toBe(0); // one of four right, then three of four: the first of equals
    expect(mostUndecided(predictions, 'line_1')).toBe(0); // three of four
    expect(mostUndecided(readPredictions(madePredictions([4, 4, 1, 5, 4, 7, 1, 9])), 'line_1')).toBe(100); // four, then two of four
  });
  it('orders programs and keeps every one of them', () => {
    const indices = (order: Parameters<typeof orderPrograms>[1], depth: number | null = null): number[] =>
      orderPrograms(predictions, order, depth).map((program) => program.index);
    expect(indices('drawn')).toEqual([0, 1, 2, 3]);
    expect(indices('depth')).toEqual([0, 2, 1, 3]);
    expect(indices('root_line')).toEqual([0, 3, 1, 2]);
    expect(indices('settled')).toEqual([0, 1, 3, 2]);
    expect(indices('depth', 2)).toEqual([1, 3]);
  });
  it('makes rows of programs over steps', () => {
    expect(cellsOf(predictions, orderPrograms(predictions, 'depth', 2), 'right')).toEqual([0, 1, 1, 0, 1, 1]);
    expect(cellsOf(predictions, [predictions.programs[3]!], 'source')).toEqual([null, 1, 1]);
  });
});
