// Writes questions as the browser does: node render_questions.mjs RENDER.mjs QUESTIONS.json WRITTEN.json
import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

const [renderFile, questionsFile, writtenFile] = process.argv.slice(2);
const { askAgain } = await import(pathToFileURL(renderFile).href);
const questions = JSON.parse(await readFile(questionsFile, 'utf8'));
await writeFile(writtenFile, JSON.stringify(questions.map(([name, values]) => askAgain(name, values))));
