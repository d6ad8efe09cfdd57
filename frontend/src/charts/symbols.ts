/** Marks that differ in shape as well as in colour. */
import { symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye } from 'd3-shape';

const SHAPES = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolCross, symbolStar, symbolWye];

/** The path of the mark of a group around (0, 0), `area` square pixels large. Seven shapes and eight colours give 56 groups a mark each. */
export function markPath(index: number, area = 40): string {
  return symbol(SHAPES[index % SHAPES.length], area)() ?? '';
}
