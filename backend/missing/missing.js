// The page of a window whose data is not there. It stands by itself: the app's page needs the data.
const at = (id) => document.getElementById(id);
const every = 3000;
let busy = false;

function fault(text) {
  at('fault').textContent = text;
  at('fault').hidden = text === '';
}

async function ask(what, told) {
  if (busy) return;
  busy = true;
  try {
    const answer = await fetch(`/client/missing/${what}`, { method: 'POST' });
    if (answer.ok) {
      location.reload();
      return;
    }
    const { detail, code } = await answer.json();
    if (told || code !== 'data.missing') fault(detail);
  } catch (thrown) {
    if (told) fault(String(thrown));
  }
  busy = false;
}

async function show() {
  const answer = await fetch('/client/missing');
  if (!answer.ok) {
    location.reload(); // it is there by now
    return;
  }
  const { directory, old, movedAt } = await answer.json();
  at('directory').textContent = directory;
  at('old').hidden = !old;
  at('old-directory').textContent = old ?? '';
  at('when').textContent = movedAt ? `on ${new Date(movedAt).toLocaleString()}` : '';
}

at('again').addEventListener('click', () => void ask('again', true));
at('back').addEventListener('click', () => void ask('back', true));
setInterval(() => void ask('again', false), every);
void show();
