/** What the operator of a sum does with two numbers: `bindscope.tasks.assign_add.operators` in TypeScript.

A group has `modulus` elements, each of which rearranges a few letters; `a @ b` means b first, then a. */
type Combine = (n1: number, n2: number) => number;

const ARITHMETIC: Record<string, (n1: number, n2: number) => number> = {
  '+': (n1, n2) => n1 + n2,
  '-': (n1, n2) => n1 - n2,
  '*': (n1, n2) => n1 * n2,
};
const GROUPS: Record<string, (modulus: number) => number[][]> = {
  symmetric: (modulus) => permutationsOf(lettersOf(modulus)),
  dihedral: (modulus) => {
    const corners = Array.from({ length: modulus / 2 }, (_, corner) => corner);
    const within = (corner: number): number => (corner + corners.length) % corners.length;
    return [...corners.map((turn) => corners.map((x) => within(turn + x))), ...corners.map((turn) => corners.map((x) => within(turn - x)))];
  },
};
const GROUP_SYMBOL = '@';

export function isOperator(operator: string): boolean {
  return operator in ARITHMETIC || operator in GROUPS;
}

/** How the operator is written in a sum. */
export function symbolOf(operator: string): string {
  return operator in GROUPS ? GROUP_SYMBOL : operator;
}

/** The operation itself: `combineWith('symmetric', 6)(1, 2)` is 4. */
export function combineWith(operator: string, modulus: number): Combine {
  const elements = GROUPS[operator]?.(modulus);
  if (!elements) return (n1, n2) => (((ARITHMETIC[operator]?.(n1, n2) ?? Number.NaN) % modulus) + modulus) % modulus;
  const numbers = new Map(elements.map((element, number) => [String(element), number]));
  return (n1, n2) => numbers.get(String(elements[n2]?.map((letter) => elements[n1]?.[letter]))) ?? Number.NaN;
}

function lettersOf(modulus: number): number {
  let letters = 1;
  for (let size = 1; size < modulus; size *= letters) letters += 1;
  return letters;
}

/** All rearrangements of 0, 1, …, in dictionary order. */
function permutationsOf(letters: number): number[][] {
  const extend = (before: number[]): number[][] =>
    before.length === letters
      ? [before]
      : Array.from({ length: letters }, (_, letter) => letter).flatMap((letter) => (before.includes(letter) ? [] : extend([...before, letter])));
  return extend([]);
}
