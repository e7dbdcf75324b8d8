// The native dialog of a request; see dialog_linux.c. Texts are UTF-8 and are copied.
#include <gtk/gtk.h>
#include <stdint.h>

typedef struct DeskhandDialog DeskhandDialog;

// From any thread: describes a dialog, then shows it. id is told back by deskhandDialogDone, once.
DeskhandDialog *deskhandDialogNew(uintptr_t id, const char *title, const char *heading, const char *about, int code);
void deskhandDialogLine(DeskhandDialog *, int style, const char *text, int goes);
void deskhandDialogChoices(DeskhandDialog *, int several, int own);
void deskhandDialogChoice(DeskhandDialog *, const char *label, const char *about);
void deskhandDialogButton(DeskhandDialog *, const char *label, int needs, int enter);
void deskhandDialogPlain(DeskhandDialog *, const char *label);
void deskhandDialogShow(DeskhandDialog *, int guard);

// From any thread: brings the question before closing forward, if it is there.
void deskhandDialogPresent(void);

// From any thread: takes a dialog away, if it is still there.
void deskhandDialogWithdraw(uintptr_t id);

// GTK's thread only.
gboolean deskhandIsDialog(gpointer window);
