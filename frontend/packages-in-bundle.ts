import type { Plugin } from 'vite';

const FOLDER = /^.*?\/((?:node_modules\/(?:@[^/]+\/)?[^/]+\/)+)/; // of a package, also of one inside another's
const OWN = /^\0(vite|rolldown)\//; // what the bundler puts in itself

/**
 * Lists the folders of the packages that have code in the bundle, its worker included, in `packages.json`.
 * `hatch_build.py` makes their licences and the bill of materials of it.
 */
export function packagesInBundle(): { page: Plugin; worker: Plugin } {
  const folders = new Set<string>();
  const collect = (bundle: Parameters<Extract<Plugin['generateBundle'], (...given: never[]) => unknown>>[1]): void => {
    for (const part of Object.values(bundle)) {
      for (const [id, module] of part.type === 'chunk' ? Object.entries(part.modules) : []) {
        const folder = FOLDER.exec(id)?.[1]?.slice(0, -1) ?? (OWN.test(id) ? id.replace(/^\0([^/]+).*/, 'node_modules/$1') : '');
        if (folder && module.renderedLength) folders.add(folder);
      }
    }
  };
  return {
    worker: { name: 'packages-in-worker', generateBundle: (_, bundle) => collect(bundle) },
    page: {
      name: 'packages-in-bundle',
      generateBundle(_, bundle) {
        collect(bundle);
        this.emitFile({ type: 'asset', fileName: 'packages.json', source: JSON.stringify([...folders].sort()) });
      },
    },
  };
}
