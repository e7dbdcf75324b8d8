/** The texts of answers: what stands around code, pictures and notes. */
export const answers = {
  'code.wrap': 'Wrap long lines',
  'diagram.broken': 'This diagram cannot be drawn: {why}',
  'diagram.diagram': 'Show diagram',
  'diagram.drawing': 'Drawing…',
  'diagram.name': 'Diagram',
  'diagram.source': 'Show source',
  'fold.name': 'Details',
  'markdown.picture': 'Picture',
  'note.back': 'Back to the text',
  'note.go': 'Footnote {name}',
};
