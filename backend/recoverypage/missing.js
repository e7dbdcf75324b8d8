// The page of a window whose data is not there. It stands by itself: the app's page needs the data.
const at = (id) => document.getElementById(id);
const every = 3000;
let busy = false;

// What is said of a database that is not the one that was there, or is damaged. The directory's own words are in the page.
const aside = {
  title: 'Or begin with empty data',
  about: 'What lies beside the lost database is put aside, into a directory beside it. Nothing is deleted.',
  button: 'Begin with empty data',
};
const goOn = {
  title: 'Or go on with this database',
  about: 'What the other one had and this one does not is not there then, and files of messages that only the other one knows are removed.',
  button: 'Use this database',
};
const back = 'Put the right deskhand.db back, from a backup for example: Deskhand looks again by itself, and goes on.';
const words = {
  missing: { title: 'Your database is missing', about: 'There was a database in this directory, and it is gone. Nothing was made in its place.', waiting: back, accept: aside },
  empty: { title: 'Your database is empty', about: 'The database in this directory has no bytes, and it had before. Nothing was changed.', waiting: back, accept: aside },
  older: { title: 'Your database is older than it was', about: 'The database in this directory lacks what was in it before. Nothing was changed.', waiting: back, accept: goOn },
  other: { title: 'This is another database', about: 'The database in this directory is not the one that was there. Nothing was changed.', waiting: back, accept: goOn },
  damaged: {
    title: 'Your database is damaged',
    about: 'It cannot be read as it is. Nothing was deleted.',
    waiting: 'Put a backup of deskhand.db in its place, or read all that can be read into a new directory, in a terminal: deskhand verify --salvage NEWDIR',
  },
};

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
  const { kind, directory, old, movedAt, sessions, seenAt, detail } = await answer.json();
  const said = words[kind];
  if (said) {
    at('title').textContent = said.title;
    at('about').textContent = said.about;
    at('waiting').textContent = said.waiting;
    at('seen').hidden = !seenAt && !detail;
    at('seen').textContent = detail ?? `When it was last seen, on ${new Date(seenAt).toLocaleString()}, it had ${sessions ?? 0} conversations.`;
    at('accept-part').hidden = !said.accept;
    at('accept-title').textContent = said.accept?.title ?? '';
    at('accept-about').textContent = said.accept?.about ?? '';
    at('accept').textContent = said.accept?.button ?? '';
  }
  at('directory').textContent = directory;
  at('old').hidden = !old;
  at('old-directory').textContent = old ?? '';
  at('when').textContent = movedAt ? `on ${new Date(movedAt).toLocaleString()}` : '';
}

at('again').addEventListener('click', () => void ask('again', true));
at('back').addEventListener('click', () => void ask('back', true));
at('accept').addEventListener('click', () => void ask('accept', true));
setInterval(() => void ask('again', false), every);
void show();
