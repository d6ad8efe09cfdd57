/** Handing something to the reader: as a file, or through the clipboard. */

export function saveFile(name: string, content: Blob | string, type = 'text/plain'): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: `${type};charset=utf-8` }) : content;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Whether the text is in the clipboard now. Where the browser's own way is closed (plain http), a selected field is copied. */
export async function copyText(text: string, beside: Element): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text, beside);
  }
}

function copySelected(text: string, beside: Element): boolean {
  const field = document.createElement('textarea');
  field.value = text;
  field.style.cssText = 'position: fixed; opacity: 0; top: 0;';
  const before = document.activeElement;
  beside.append(field); // within the panel: the rest of the page may be inert
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return copied;
}

/** A name for files: 'What the model answers', binding-laptop, 3700 → 'what-the-model-answers-binding-laptop-3700'. */
export function fileName(title: string, run: string | undefined, step: number | null | undefined): string {
  const words = [title, run ?? '', step ?? ''].map((part) => String(part).toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'));
  return words.map((word) => word.replaceAll(/^-|-$/g, '')).filter(Boolean).join('-') || 'bindscope';
}
