/** What was read lately, so that going back is instant. The one used longest ago goes first. */
export class Cache<T> {
  readonly #kept = new Map<string, T>();

  constructor(readonly size: number) {}

  get(key: string): T | undefined {
    const found = this.#kept.get(key);
    if (found !== undefined) this.set(key, found);
    return found;
  }

  set(key: string, value: T): void {
    this.#kept.delete(key);
    this.#kept.set(key, value);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > this.size && oldest !== undefined) this.#kept.delete(oldest);
  }
}
