import { describe, expect, it } from 'vitest';
import { asOnPage } from './format';

describe('numbers that were written for a terminal', () => {
  it('have a minus, a space before the percent sign, and no minus before 0', () => {
    expect(asOnPage('-9.4 % [-19.1 to 0.5], 77% fewer, [-0 to 0.4], -0.4 %')).toBe('−9.4 % [−19.1 to 0.5], 77 % fewer, [0 to 0.4], −0.4 %');
  });
  it('leave steps, ranges and names as they are', () => {
    expect(asOnPage('steps 0-100, L2.H3-L4, 2026-11-17, [7.4–9.9], line-1 rule')).toBe('steps 0-100, L2.H3-L4, 2026-11-17, [7.4–9.9], line-1 rule');
  });
});
