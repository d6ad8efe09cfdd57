import { describe, expect, it } from 'vitest';
import { placeBeside } from './place';

const WINDOW = { width: 360, height: 780 };
const CARD = { width: 300, height: 120 };

describe('a card', () => {
  it('stands under its word, or above it at the foot of the window', () => {
    expect(placeBeside({ left: 20, top: 100, width: 50, height: 20 }, CARD, WINDOW)).toEqual({ left: 20, top: 124 });
    expect(placeBeside({ left: 20, top: 740, width: 50, height: 20 }, CARD, WINDOW)).toEqual({ left: 20, top: 616 });
  });
  it('is always within the window', () => {
    for (let left = -50; left < 420; left += 37)
      for (let top = -50; top < 840; top += 53) {
        const at = placeBeside({ left, top, width: 40, height: 18 }, CARD, WINDOW);
        expect(at.left).toBeGreaterThanOrEqual(0);
        expect(at.top).toBeGreaterThanOrEqual(0);
        expect(at.left + CARD.width).toBeLessThanOrEqual(WINDOW.width);
        expect(at.top + CARD.height).toBeLessThanOrEqual(WINDOW.height);
      }
  });
});
