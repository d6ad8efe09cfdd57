/** Let one element fill the window, as it stands: in the top layer, with the rest of the page out of reach. */

/** Gives the way back. */
export function maximise(element: HTMLElement): () => void {
  const before = document.activeElement;
  const silenced: HTMLElement[] = [];
  for (let inner: Element = element; inner !== document.body && inner.parentElement; inner = inner.parentElement) {
    for (const sibling of inner.parentElement.children) {
      if (sibling === inner || !(sibling instanceof HTMLElement) || sibling.inert) continue;
      sibling.inert = true;
      silenced.push(sibling);
    }
  }
  element.popover = 'manual';
  element.showPopover();
  element.setAttribute('role', 'dialog');
  element.setAttribute('aria-modal', 'true');
  document.documentElement.style.overflow = 'hidden';
  return () => {
    for (const sibling of silenced) sibling.inert = false;
    if (element.matches(':popover-open')) element.hidePopover();
    element.popover = null;
    element.removeAttribute('role');
    element.removeAttribute('aria-modal');
    document.documentElement.style.overflow = '';
    if (before instanceof HTMLElement) before.focus();
  };
}
