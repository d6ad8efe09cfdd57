/** The seven progress measures in words, and one of them over all splits. */
export const MEASURES: readonly { name: string; short: string; meaning: string }[] = [
  { name: 'ov2_mlp2_accuracy', short: 'adds alone', meaning: 'OV of layer 2, the MLP and the unembedding alone, given two numbers: the fraction of all pairs that are added correctly.' },
  { name: 'qk1_num_to_prev_var', short: 'positions attend one back', meaning: 'By position embeddings alone: the fraction of positions that prefer, in layer 1, the position before them to all others where a variable could stand.' },
  { name: 'qk2_ov1_var_identity', short: 'variables match', meaning: 'In layer 2: the fraction of variables whose copy scores highest with the copy of the same variable.' },
  { name: 'attn_l1_equal_to_operands', short: '= attends to operands', meaning: 'In layer 1, in sums with at most one variable: the fraction in which = attends most to the two operands, as the authors measure it.' },
  { name: 'attn_l1_equal_to_operands_all', short: '= attends to operands, all splits', meaning: 'The same over sums of all nine splits.' },
  { name: 'attn_l1_num_to_prev', short: 'numbers attend one back', meaning: 'In layer 1: the fraction of assigned numbers that attend most to the variable before them.' },
  { name: 'attn_l2_equal_to_values', short: '= attends to values', meaning: 'In layer 2, in sums with at most one variable: the fraction in which = attends most to the two numbers to be added.' },
  { name: 'probe_l1_var_from_num', short: 'name readable', meaning: 'After layer 1: the fraction of assigned numbers from whose residual stream a linear probe reads the name of their variable.' },
];
