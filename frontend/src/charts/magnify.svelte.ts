/** How much larger than usual drawings are on very large screens, where the page's letters grow too. */
import { createSubscriber } from 'svelte/reactivity';

const follow = createSubscriber((update) => {
  window.addEventListener('resize', update);
  return () => window.removeEventListener('resize', update);
});

/** 1 on most screens; the size of the page's letters over 16 pixels where that is clearly more. */
export function magnification(): number {
  follow();
  const letters = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  return letters >= 1.2 ? letters : 1;
}

/** Where a pointer is inside an element, in the element's own pixels even when it is drawn larger. */
export function placeWithin(element: HTMLElement | undefined, event: MouseEvent): { x: number; y: number } {
  const box = element?.getBoundingClientRect();
  if (!element || !box?.width || !box.height) return { x: -1, y: -1 };
  return {
    x: ((event.clientX - box.left) * element.offsetWidth) / box.width,
    y: ((event.clientY - box.top) * element.offsetHeight) / box.height,
  };
}
