// Holds documents against the JSON schemas of npm's kubernetes-models: node validate.mjs NODE_MODULES < [document, ...] > [what is wrong or "", ...]
// A schema knows required fields, words, numbers and quantities. It passes fields that it does not know: the types are for these.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const modules = process.argv[2];

async function whatIsWrong(document) {
  const library = document.apiVersion.startsWith('monitoring.coreos.com/') ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models';
  const model = await import(pathToFileURL(`${modules}/${library}/${document.apiVersion}/${document.kind}.js`));
  try {
    new model[document.kind](document).validate();
    return '';
  } catch (error) {
    return error.message;
  }
}

console.log(JSON.stringify(await Promise.all(JSON.parse(readFileSync(0)).map(whatIsWrong))));
