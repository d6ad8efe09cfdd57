/** Words that need explaining, each in a sentence or two. A page adds its own here and writes `<Term name="logit lens" />`. */
export const TERMS: Record<string, string> = {
  binding:
    'Tying a name to a value so that the value can be found again by the name: after x=5 the name x stands for 5, until it is assigned again.',
  dereference: 'Finding the value of a name: from the name to the line that assigns it, and on if that line names another variable.',
  'reference chain':
    'The assignments that lead from the queried variable back to a constant: in a=5, b=a, #b: the chain is #b → b=a → a=5.',
  depth: 'The number of assignments on the queried chain. a=4 … #a: has depth 1; each further variable in between adds one.',
  hop: 'One move along a chain: from a variable to what stands on the right-hand side of its assignment.',
  root: 'The end of a chain: the line where a constant is assigned. The answer to the query is that constant.',
  'root line': 'The line of the program on which the queried chain ends, counted from 1.',
  distractor: 'An assignment that is not on the queried chain. It has to be read, and must not change the answer.',
  query: 'The last line of a program, such as #b:, which asks for the value of b.',
  program: 'Assignments, one a line, of a digit or an earlier variable, then a query. The model reads it token by token and answers with one digit.',
  token: 'The unit the model reads. Here every character is one token, line breaks included.',
  constant: 'A digit on the right-hand side of an assignment.',
  checkpoint: 'The weights of the model as they were at one step of training, saved so that it can be examined later.',
  step: 'One update of the weights on one batch of programs.',
  run: 'One training of one model, with all its settings, its measurements and its saved checkpoints.',
  seed: 'The number that starts the random generator. The same seed gives the same programs, or the same training.',
  phase: 'A stretch of training in which the model keeps to one way of answering: random, heuristic or systematic for programs; addition, assignment or refinement for sums.',
  random: 'The first phase: the model has learnt at most that the answer is a digit, and which digit it says has nothing to do with the program.',
  heuristic:
    'A short cut that is often right: say the constant of the first line or two, whatever is asked. In the second phase the model does mostly this.',
  systematic: 'The third phase: the answer follows the chain, for every depth, wherever the root stands.',
  'line-1 constant': 'The digit assigned in the first line: what the heuristic answers.',
  'residual stream':
    'The vector at each position that all layers read from and add to. Whatever one layer tells a later one passes through it.',
  position: 'The index of a token in the program, counted from the left.',
  layer: 'One attention step and one MLP, each of which reads the residual stream and adds to it.',
  head: 'One of the parallel parts of an attention layer. It decides from which earlier positions to copy, and what.',
  attention: 'How positions exchange information: each position weighs the earlier ones, and takes from them in proportion.',
  MLP: 'The part of a layer that works on each position alone.',
  logit: 'The score the model gives to a possible next token before scores are turned into probabilities.',
  probability: 'How likely the model takes a next token to be, from 0 to 1; the probabilities of all tokens add up to 1.',
  'logit lens':
    'Reading the residual stream of an early layer as though it were the last: which token would the model say if it stopped here?',
  entropy: 'How undecided the model is, in bits or nats: 0 when one token has all the probability.',
  counterfactual: 'A second program that differs in one token, usually the constant at the root, so that the right answer differs.',
  base: 'The run of the model that is changed.',
  source: 'The run of the model from which an activation is taken.',
  'interchange intervention':
    'Put an activation from one program’s run into another’s, at one site, and see whether the answer follows. If it does, that site carries what differs between the two.',
  patching: 'Another word for an interchange intervention: replacing an activation during a run by one from another run.',
  noising: 'Patching from the counterfactual into the original: does this site suffice to change the answer?',
  denoising: 'Patching from the original into the counterfactual: does this site suffice to bring the right answer back?',
  ablation: 'Taking a part out, by setting its output to zero or to its mean, to see what is lost without it.',
  success: 'The fraction of pairs in which, after the patch, the other program’s answer is the model’s first choice.',
  'logit difference':
    'How far the patch moves the score of the other answer, as a fraction of the way between the two unpatched runs. Mere disruption can move it too, so read it beside success.',
  subspace: 'Some directions within the residual stream. If exchanging only what lies along them changes the answer, they carry it.',
  PCA: 'Principal component analysis: the directions along which points vary most, in order.',
  probe: 'A simple classifier trained to read a quantity from activations. That it can be read does not show that the model uses it.',
  'random control': 'The same intervention with random directions of the same number. What they achieve by chance is subtracted in thought.',
  'Wilson interval': 'A range for a fraction estimated from n cases. It stays within 0 and 1, and is honest for small n and fractions near either end.',
  'McNemar test':
    'A test for two models on the same questions. Only the questions on which they differ count: were both equally good, either would be ahead on half of them.',
  misleading: 'Said of a program whose answer is neither line 1’s constant nor line 2’s: there the short cut and the chain give different digits.',
  'confidence interval': 'A range made so that in 95 of 100 repetitions of the measurement it would hold the true value.',
  n: 'How many programs or pairs a number was measured on.',
  accuracy: 'The fraction of programs for which the most probable token is the right answer.',
  chance: 'The accuracy of someone who guesses without reading the program.',
  'confusion matrix': 'For each true answer, how often each digit was predicted. A perfect model fills the diagonal alone.',
  'feature importance': 'How much worse a prediction of the model’s successes becomes when one attribute of the programs is shuffled.',
  agreement: 'How often the model says what a rule would say, whether that is right or not.',
  circuit: 'The few parts of a model that together carry out one task, found by taking parts away or exchanging them.',
  sum: 'Assignments of numbers to variables, then two operands to add modulo a prime: c=1 b=17 | b+19 has the answer 36.',
  modulus: 'The prime p at which numbers start again from 0: with p = 59, 58 + 3 is 2.',
  operand: 'What is added: a number, or a variable that stands for the number it was assigned.',
  split:
    'A set of sums for evaluation, named by the number of variables in the sum (0, 1, 2) and by what training never showed: tr nothing, add the pair of numbers, var a variable on that side of the sum.',
  'held-out pair': 'Two numbers in this order that training never adds. 3+1 can be held out while 1+3 is trained.',
  'swap seen': 'Said of a held-out pair whose swapped pair was trained: who treats both sides alike needs nothing new for it. The harder half is held out in both orders.',
  addition: 'The first phase of a run on modular addition: two numbers are added, variables are not yet looked up.',
  assignment: 'The second phase of a run on modular addition: variables are looked up where training shows them.',
  refinement: 'The third phase of a run on modular addition: variables are looked up also where training never shows them.',
  spike: 'A sudden jump of accuracy on several splits between two neighbouring evaluations.',
  'progress measure': 'A number that follows one part of the circuit through training, and can rise before accuracy does.',
  QK: 'The bilinear form of an attention layer that says how much one vector attends to another, before the softmax.',
  OV: 'The map of an attention layer that says what is carried over from where it attends.',
  'Fourier feature': 'A cosine or sine of a number, as though it were an angle: cos(2πkn/p). Adding numbers modulo p is turning by angles.',
  neuron: 'One unit of the MLP. Before its activation it is a weighted sum of what it reads.',
  'explained variance': 'The fraction of the variation that a fit accounts for: 1 for a perfect fit, 0 for one no better than the mean.',
  transplant: 'Giving a model one part of the weights of another checkpoint of the same training, to see whether its answers follow.',
  provenance: 'Where numbers come from: run, step, how many cases, the seed and how the interval was made.',
  template: 'A sequence of wildcards and tokens that stand for themselves. A sequence made from it gives each wildcard a symbol, different ones for different wildcards: q r q is of the form ABA.',
  'identity scaling':
    'Adding a trained multiple of the identity to the product of two attention matrices: a·I to W_K W_Qᵀ lets a head attend to equal symbols, b·I to W_V W_Oᵀ lets it pass a symbol on as it is. Both start at 0.',
  'transformer kernel':
    'How alike an infinitely wide transformer with random weights finds two sequences. N compares templates under it, each with symbols of its own; if no labels make it vanish, kernel regression learns any labels of the templates for unseen symbols.',
  sharpness: 'β: how sharp the random attention is. At 0 it attends to all positions alike.',
};

/** The explanation of a word, whatever its case; empty for a word that is not explained. */
export function explain(name: string): string {
  return TERMS[name] ?? LOWER[name.toLowerCase()] ?? '';
}

const LOWER = Object.fromEntries(Object.entries(TERMS).map(([name, text]) => [name.toLowerCase(), text]));
