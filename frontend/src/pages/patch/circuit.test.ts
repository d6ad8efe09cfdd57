import { describe, expect, it } from 'vitest';
import type { Body } from '../../api/body';
import { edgesOf, faithfulness, FINAL, HALF, layOut, markOn, pathOf, shownEdges, tellEdge, tellPart, tellProgress, thickness, told, type Edge } from './circuit';
import { MOST_NOTES, readNotes, setNote, withNotes, writeNotes } from './notes';

const along = (dim: string, values: (number | string | null)[]) => ({ dims: dim ? [dim] : [], values, units: '' });
const PARTS = ['embed', 'L0.H0', 'L0.H1', 'L0.mlp_out', 'L1.H0', 'L1.H1', 'L1.mlp_out', 'L0.H0.q', 'L0.H0.k', 'L0.H0.v'];
const body = (kept: (number | null)[] = [0, 1]): Body =>
  ({
    title: 'made', sizes: { edge: 4, part: PARTS.length, size: 2 }, attrs: { n_checked: 2 },
    coords: {
      sender: along('edge', ['embed', 'L0.H1', 'L0.mlp_out', 'L1.H0']), receiver: along('edge', ['L0.H1.v', 'L1.H0.q', 'L1.mlp_out', 'final']),
      at: along('edge', ['rhs 1', '', '', 'colon']), part: along('part', PARTS), size: along('size', [10, 20]),
    },
    variables: {
      effect: along('edge', [0.5, -0.25, 0.1, 0.05]), exact: along('edge', [0.4, -0.3, null, null]),
      part_effect: along('part', PARTS.map((_, index) => index / 10)), part_exact: along('part', PARTS.map(() => 1)),
      faithfulness: along('size', kept), faithfulness_low: along('size', kept), faithfulness_high: along('size', kept), kept: along('size', kept),
      random_least: along('size', [0, null]), random_most: along('size', [0.5, null]), finding: along('', ['found']), error: along('', ['an error']),
    },
  }) as unknown as Body; // prettier-ignore

describe('edges of a circuit', () => {
  const edges = edgesOf(body());

  it('join parts, through one side of a head or none', () => {
    expect(edges.map(({ key, to, side }) => [key, to, side])).toEqual([
      ['embed>L0.H1.v', 'L0.H1', 'v'],
      ['L0.H1>L1.H0.q', 'L1.H0', 'q'],
      ['L0.mlp_out>L1.mlp_out', 'L1.mlp_out', ''],
      ['L1.H0>final', 'final', ''],
    ]);
  });

  it('are shown by strength, and besides what a reader wrote on', () => {
    expect(shownEdges(edges, 1, ['L1.H0>final']).map(({ key }) => key)).toEqual(['embed>L0.H1.v', 'L1.H0>final']);
    expect(shownEdges(edges, 9, [])).toHaveLength(4);
  });

  it('say both effects, or that one is not known', () => {
    expect(tellEdge(edges[1] as Edge)).toBe('L0.H1 → queries of L1.H0: attributed −0.250, exact −0.300');
    expect(tellEdge(edges[3] as Edge)).toBe('L1.H0 → the logits: attributed 0.050, not patched exactly, mostly at colon');
    expect(tellPart(body(), 'L0.H0')).toContain('its queries: attributed 0.700, exact 1.000');
    expect(tellPart(body(), 'L0.mlp_out')).toBe('the MLP of layer 0, all its edges: attributed 0.300, exact 1.000');
  });

  it('are thicker the stronger they are', () => {
    expect(thickness(-0.5, 0.5)).toBeGreaterThan(thickness(0.1, 0.5));
    expect(thickness(0, 0)).toBeGreaterThan(0);
  });
});

describe('the diagram', () => {
  for (const width of [340, 1200]) {
    const layout = layOut(PARTS, width);

    it(`has every part once, inside ${width} pixels, later layers higher`, () => {
      expect([...layout.nodes.keys()].sort()).toEqual([...PARTS.slice(0, 7), FINAL].sort());
      for (const { x, y, width: wide } of layout.nodes.values()) {
        expect(x - wide / 2).toBeGreaterThanOrEqual(0);
        expect(x + wide / 2).toBeLessThanOrEqual(width);
        expect(y - HALF).toBeGreaterThanOrEqual(0);
        expect(y + HALF).toBeLessThanOrEqual(layout.height);
      }
      const y = (name: string): number => layout.nodes.get(name)?.y ?? NaN;
      expect([y('embed'), y('L0.H0'), y('L0.mlp_out'), y('L1.H0'), y('final')]).toEqual([y('embed'), y('L0.H0'), y('L0.mlp_out'), y('L1.H0'), y('final')].sort((a, b) => b - a));
    });

    it(`ends every arrow at the bottom of its receiver, ${width} pixels wide`, () => {
      for (const edge of edgesOf(body())) {
        const [x, end] = (/(-?[\d.]+),(-?[\d.]+)$/.exec(pathOf(edge, layout)) ?? []).slice(1).map(Number);
        const to = layout.nodes.get(edge.to);
        expect(end).toBeCloseTo((to?.y ?? NaN) + HALF);
        expect(Math.abs((x ?? NaN) - (to?.x ?? NaN))).toBeLessThanOrEqual((to?.width ?? 0) / 2);
        expect(markOn(edge, layout)).not.toBeNull();
      }
    });
  }

  it('leaves out what it does not know', () => {
    expect(pathOf({ ...(edgesOf(body())[0] as Edge), to: 'L9.H9' }, layOut(PARTS, 500))).toBe('');
  });
});

describe('what is told', () => {
  it('is progress until everything is there, then the finding', () => {
    expect(tellProgress(body([0, null]))).toBe('2 of 2 edges patched exactly, 1 of 2 circuits tried…');
    expect(tellProgress(body())).toBe('');
    expect([told(body(), 'finding'), told(body(), 'error')]).toEqual(['found', 'an error']);
  });

  it('is faithfulness beside the range of random circuits', () => {
    expect(faithfulness(body()).map(({ y, low, high }) => [y, low, high])).toEqual([
      [[0, 1], [0, 1], [0, 1]],
      [[0.25, null], [0, null], [0.5, null]],
    ]); // prettier-ignore
  });
});

describe('notes', () => {
  it('come back from the text they are written as', () => {
    const notes = new Map([['L1.H0', 'copies; 100 % of it: a=b'], ['L0.H1>L1.H0.q', '50%3B → größer']]); // prettier-ignore
    expect(readNotes(writeNotes(notes))).toEqual(notes);
  });

  it('are set, changed and taken away', () => {
    const once = setNote('', 'L1.H0', ' first ');
    expect(readNotes(once).get('L1.H0')).toBe('first');
    expect(readNotes(setNote(once, 'L1.H0', 'second')).get('L1.H0')).toBe('second');
    expect(setNote(once, 'L1.H0', ' ')).toBe('');
  });

  it('that cannot be read are left out, and many are cut', () => {
    expect(readNotes('<b>:x;L1.H0;:y;L1.H0:').size).toBe(0);
    const many = Array.from({ length: 99 }, (_, index) => `L${index}.H0:x`).join(';');
    expect(readNotes(many).size).toBe(MOST_NOTES);
  });

  it('are part of the body that is saved', () => {
    const noted = withNotes(body(), new Map([['L1.H0', 'copies']]));
    expect(noted.coords.note_on?.values).toEqual(['L1.H0']);
    expect(noted.variables.note?.values).toEqual(['copies']);
    expect(withNotes(body(), new Map())).toEqual(body());
  });
});
