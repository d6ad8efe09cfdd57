/** Somewhere to go instead. */
export interface Link {
  href: string;
  name: string;
}
