/** From K_attn to K_trans: E[φ(a)φ(b)] for Gaussian (a, b), in closed form or by quadrature, as `bindscope.theory.kernel_activation`. */
import { ACTIVATIONS as FUNCTIONS } from '../engine/activations';
import { eigenSymmetric } from './symmetric';

export const ACTIVATIONS = ['cos', 'relu', 'gelu', 'tanh', 'identity'] as const;
export type ActivationName = (typeof ACTIVATIONS)[number];
export type Expect = (first: number, second: number, cross: number) => number; // variances and covariance

const N_NODES = 64;

export function findActivation(name: ActivationName, b1 = 1, b2 = 0.5): Expect {
  if (name === 'cos') {
    return (first, second, cross) => (Math.exp((-b1 * b1 * (first + second - 2 * cross)) / 2) + Math.cos(2 * b2) * Math.exp((-b1 * b1 * (first + second + 2 * cross)) / 2)) / 2;
  }
  if (name === 'identity') return (_first, _second, cross) => cross;
  if (name === 'relu') return reluKernel;
  return byQuadrature(name === 'tanh' ? Math.tanh : gelu);
}

/** The arc-cosine kernel of degree 1. */
function reluKernel(first: number, second: number, cross: number): number {
  const size = Math.sqrt(first * second);
  const cosine = Math.min(1, Math.max(-1, cross / Math.max(size, Number.MIN_VALUE)));
  const angle = Math.acos(cosine);
  return (size * (Math.sin(angle) + (Math.PI - angle) * cosine)) / (2 * Math.PI);
}

function byQuadrature(phi: (t: number) => number): Expect {
  return (first, second, cross) => {
    const { nodes, weights } = gaussHermite();
    const [left, right] = [Math.sqrt(first), Math.sqrt(second)];
    const correlation = Math.min(1, Math.max(-1, cross / Math.max(left * right, Number.MIN_VALUE)));
    const rest = Math.sqrt(1 - correlation ** 2);
    return nodes.reduce((sum, z, index) => {
      const inner = nodes.reduce((total, other, place) => total + weights[place]! * phi(right * (correlation * z + rest * other)), 0);
      return sum + weights[index]! * phi(left * z) * inner;
    }, 0);
  };
}

let found: { nodes: number[]; weights: number[] } | null = null;

/** Nodes and weights for a standard Gaussian, from the eigenvectors of the recurrence of Hermite polynomials. */
export function gaussHermite(): { nodes: number[]; weights: number[] } {
  if (found) return found;
  const recurrence = Array.from({ length: N_NODES }, (_, row) => Array.from({ length: N_NODES }, (_, column) => (Math.abs(row - column) === 1 ? Math.sqrt(Math.max(row, column)) : 0)));
  const { values, vectors } = eigenSymmetric(recurrence);
  found = { nodes: values, weights: vectors.map((vector) => vector[0]! ** 2) };
  return found;
}

function gelu(t: number): number {
  return FUNCTIONS.gelu!(t);
}
