/** Where something that pops up goes: under what it belongs to, or above where there is no room, and always within the window. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

export function placeBeside(anchor: Box, card: { width: number; height: number }, window: { width: number; height: number }, margin = 8): { left: number; top: number } {
  const left = Math.max(margin, Math.min(anchor.left, window.width - card.width - margin));
  const below = anchor.top + anchor.height + 4;
  const above = anchor.top - card.height - 4;
  const top = below + card.height + margin <= window.height || above < margin ? below : above;
  return { left, top: Math.max(margin, Math.min(top, window.height - card.height - margin)) };
}

/** Put a shown popover beside its anchor. */
export function placePopover(popover: HTMLElement, anchor: Element): void {
  const at = placeBeside(anchor.getBoundingClientRect(), popover.getBoundingClientRect(), {
    width: document.documentElement.clientWidth,
    height: document.documentElement.clientHeight,
  });
  popover.style.left = `${at.left}px`;
  popover.style.top = `${at.top}px`;
}
