/** Where what a claim is about can be looked at live: a page with its settings, where a reader chooses depth, position and checkpoint. */
import { viewToHash, type View } from '../state/hash';

interface Place {
  page: string;
  options?: Record<string, string>;
  words: string;
}

const ARITHMETIC = (tab: string, words: string): Place => ({ page: 'arithmetic', options: { 'arithmetic.tab': tab }, words });
const PLACES: Record<string, Place> = {
  VB1: { page: 'trajectory', words: 'accuracy over training' },
  VB2: { page: 'trajectory', words: 'accuracy by depth and by line' },
  VB3: { page: 'patch', options: { 'patch.of': 'mean', 'patch.depth': '2' }, words: 'every layer at every position, depth by depth' },
  VB4: { page: 'patch', options: { 'patch.of': 'mean', 'heads.depth': '2' }, words: 'every head at every position, depth by depth' },
  VB5: { page: 'patch', options: { 'patch.of': 'mean' }, words: 'the mean grid at each checkpoint' },
  VB6: { page: 'subspace', words: 'subspaces, their swaps and controls' },
  VB7: { page: 'attention', words: 'every head ablated, by depth' },
  VB8: { page: 'trajectory', words: 'every seed’s curves' },
  AA1: ARITHMETIC('learning', 'every split over training, with its jumps'),
  AA6: ARITHMETIC('neurons', 'what its neurons compute'),
  AA7: ARITHMETIC('neurons', 'every neuron as a Fourier component'),
  AA8: ARITHMETIC('weights', 'attention read off the weights'),
  AA9: ARITHMETIC('weights', 'copies of variables in layer 2'),
  AA10: ARITHMETIC('jumps', 'components put from after a jump into before it'),
};

/** The link for a claim, with the page it leads to; null where no page has its panels. */
export function liveOf(claim: string, view: View): { href: string; page: string; words: string } | null {
  const place = PLACES[claim];
  if (!place) return null;
  const href = viewToHash({ ...view, page: place.page, options: { ...place.options } });
  return { href, page: `${place.page.charAt(0).toUpperCase()}${place.page.slice(1)}`, words: place.words };
}

export const LIVE_CLAIMS = Object.keys(PLACES);
