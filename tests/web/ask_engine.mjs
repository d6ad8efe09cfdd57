// Asks the browser's engine questions: node ask_engine.mjs ENGINE.mjs API_DIRECTORY QUESTIONS.json ANSWERS.json
import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

const [engineFile, api, questionsFile, answersFile] = process.argv.slice(2);
const { createEngine } = await import(pathToFileURL(engineFile).href);
const engine = createEngine(async (path) => {
  try {
    const file = await readFile(`${api}/${path}`);
    return file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength);
  } catch {
    return null;
  }
});

const answers = [];
for (const [operation, question] of JSON.parse(await readFile(questionsFile, 'utf8'))) {
  const start = performance.now();
  try {
    const pieces = [];
    for await (const piece of engine(operation, question)) pieces.push(piece);
    answers.push({ pieces, milliseconds: performance.now() - start });
  } catch (problem) {
    answers.push({ error: problem.message });
  }
}
await writeFile(answersFile, JSON.stringify(answers));
