/** Templates and labels as a reader types them: what is asked of the kernel, or what is wrong. */
import { MOST_TEMPLATES, MOST_TOKENS } from '../engine/templates';
import { findProblems } from './checks';
import { parseTemplate, showTemplate, splitTemplates, TemplateError, type Template } from './template';

export const USUAL = { templates: 'ABA ABB', labels: '1,-1', beta: 3, gamma: 1, activation: 'cos', cls: 'on' } as const;
export const MAX_TEXT = 2000; // characters of all templates
const MAX_TEMPLATE = 120;

export interface Typed {
  templates: Template[];
  texts: string[];
  labels: number[] | null;
  errors: string[]; // what cannot be read
  problems: string[]; // what keeps them from being a task
  tooLarge: string; // why nothing is computed of them here; empty: it is
}

export function readTyped(text: string, labelText: string): Typed {
  const texts = splitTemplates(text.slice(0, MAX_TEXT));
  const errors: string[] = [];
  const templates = texts.flatMap((each) => {
    try {
      return [parseTemplate(each)];
    } catch (problem) {
      if (!(problem instanceof TemplateError)) throw problem;
      errors.push(`${each}, ${problem.message}`);
      return [];
    }
  });
  if (!texts.length) errors.push('Write at least one template.');
  const { labels, error } = readLabels(labelText, texts.length);
  if (error) errors.push(error);
  return { templates, texts: templates.map(showTemplate), labels, errors, problems: errors.length ? [] : findProblems(templates), tooLarge: findSize(templates) };
}

/** Numbers with commas between them; none at all asks about every labelling, and so do labels that are symbols. */
export function readLabels(text: string, count: number): { labels: number[] | null; error: string } {
  const parts = text.split(',').map((part) => part.trim());
  if (!text.trim()) return { labels: null, error: '' };
  const labels = parts.map(Number);
  if (parts.some((part) => part === '') || labels.some((label) => !Number.isFinite(label) || Math.abs(label) > 1e6)) {
    return { labels: null, error: `Labels are numbers with commas between them, as in 1,-1; got '${text.slice(0, 60)}'.` };
  }
  if (labels.length !== count) return { labels: null, error: `There are ${count} templates and ${labels.length} labels; each template needs one, or leave labels empty.` };
  return { labels, error: '' };
}

function findSize(templates: Template[]): string {
  if (templates.length > MOST_TEMPLATES) return `${templates.length} templates are too many to ask while you wait; up to ${MOST_TEMPLATES} are.`;
  const long = templates.find((template) => template.length > MOST_TOKENS);
  if (long) return `${showTemplate(long)} has ${long.length} tokens; templates of up to ${MOST_TOKENS} are asked while you wait.`;
  return templates.some((template) => showTemplate(template).length > MAX_TEMPLATE) ? 'A template here has at most 120 characters.' : '';
}
