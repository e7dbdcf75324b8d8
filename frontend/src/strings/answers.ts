/** The texts of answers: what stands around code, pictures and notes. */
export const answers = {
  'code.wrap': 'Wrap long lines',
};
