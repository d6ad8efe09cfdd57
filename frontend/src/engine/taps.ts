/** What is done at the sites of a run: reading values, and putting others in their place. */
import type { Numbers } from './arithmetic';
import type { Tap } from './forward';
import type { Shape } from './model';
import { stretchesOf, type Site, type SiteName } from './sites';

/** Whole activations by 'layer name'. */
export type Kept = ReadonlyMap<string, Numbers>;

export function keyOf(layer: number | null, name: SiteName): string {
  return `${layer} ${name}`;
}

/** Keeps these activations whole, as they are when they are seen. */
export class Recorder implements Tap {
  readonly kept = new Map<string, Numbers>();

  constructor(readonly wanted: ReadonlySet<string>) {}

  wants(layer: number | null, name: SiteName): boolean {
    return this.wanted.has(keyOf(layer, name));
  }

  see(layer: number | null, name: SiteName, value: Numbers): void {
    if (this.wants(layer, name)) this.kept.set(keyOf(layer, name), value.slice());
  }
}

/** Puts the values of another run, or zeros, into these sites. */
export class Writer implements Tap {
  constructor(
    readonly sites: readonly Site[],
    readonly shape: Shape,
    readonly nPositions: number,
    readonly source: Kept | null, // null: zeros
  ) {}

  wants(layer: number | null, name: SiteName): boolean {
    return this.sites.some((site) => site.layer === layer && site.name === name);
  }

  see(layer: number | null, name: SiteName, value: Numbers): void {
    for (const site of this.sites) {
      if (site.layer !== layer || site.name !== name) continue;
      const taken = this.source?.get(keyOf(layer, name));
      for (const [from, to] of stretchesOf(site, value, this.shape, this.nPositions)) {
        if (taken) value.set(taken.subarray(from, to), from);
        else value.fill(0, from, to);
      }
    }
  }
}

/** Several taps at one site, in order: what the first one changes the next one sees. */
export function together(...taps: Tap[]): Tap {
  return {
    wants: (layer, name) => taps.some((tap) => tap.wants(layer, name)),
    see: (layer, name, value) => taps.forEach((tap) => tap.see(layer, name, value)),
  };
}

export function placesOf(sites: readonly Site[]): Set<string> {
  return new Set(sites.map((site) => keyOf(site.layer, site.name)));
}
