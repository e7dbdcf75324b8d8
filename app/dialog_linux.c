//go:build desktop && linux && !bindings

/* The native dialog of a request: who wants what, all of the target in a view that scrolls, choices and a field for a question, and
 * the buttons. No text of an agent is a format, markup or a mnemonic here.
 *
 * It is no child of the app's window, which may be hidden and stays usable, and it has a window group of its own, so that neither
 * waits for the other. The focus is in the text at first, no button is the default, and for the time of the guard nothing answers,
 * not even Escape: the keys may have been meant for another window.
 */
#include "dialog_linux.h"
#include <string.h>

extern void deskhandDialogDone(uintptr_t, int, char *, char *);

enum { LATER = -1, OPEN = -2, GONE = -3 }; /* as pressedLater and pressedOpen have them */

typedef struct { int style; char *text; gboolean goes; } Line;
typedef struct { char *label, *about; GtkWidget *box; } Choice;
typedef struct { char *label; gboolean needs, enter; GtkWidget *widget; } Button;

struct DeskhandDialog {
	uintptr_t id;
	char *title, *heading, *about, *plain;
	gboolean code, several, own, ready, ending;
	int guard;
	guint timer;
	GArray *lines, *choices, *buttons;
	GtkWidget *window, *view, *entry, *none, *more, *later, *open;
};

enum { WIDTH = 640, HIGHEST = 340, ROW = 68 }; /* in points, and characters that fit */

#define NAME "deskhand-dialog"
#define CHOICE(d, i) (&g_array_index((d)->choices, Choice, i))
#define BUTTON(d, i) (&g_array_index((d)->buttons, Button, i))

gboolean deskhandIsDialog(gpointer window) { return g_object_get_data(G_OBJECT(window), NAME) != NULL; }

static void freeLine(gpointer p) { g_free(((Line *)p)->text); }
static void freeChoice(gpointer p) { g_free(((Choice *)p)->label), g_free(((Choice *)p)->about); }
static void freeButton(gpointer p) { g_free(((Button *)p)->label); }

DeskhandDialog *deskhandDialogNew(uintptr_t id, const char *title, const char *heading, const char *about, int code) {
	DeskhandDialog *d = g_new0(DeskhandDialog, 1);
	d->id = id, d->title = g_strdup(title), d->heading = g_strdup(heading), d->about = g_strdup(about), d->code = code != 0;
	d->lines = g_array_new(FALSE, TRUE, sizeof(Line));
	d->choices = g_array_new(FALSE, TRUE, sizeof(Choice));
	d->buttons = g_array_new(FALSE, TRUE, sizeof(Button));
	g_array_set_clear_func(d->lines, freeLine);
	g_array_set_clear_func(d->choices, freeChoice);
	g_array_set_clear_func(d->buttons, freeButton);
	return d;
}

void deskhandDialogLine(DeskhandDialog *d, int style, const char *text, int goes) {
	Line l = {style, g_strdup(text), goes != 0};
	g_array_append_val(d->lines, l);
}

void deskhandDialogChoices(DeskhandDialog *d, int several, int own) { d->several = several != 0, d->own = own != 0; }

void deskhandDialogChoice(DeskhandDialog *d, const char *label, const char *about) {
	Choice c = {g_strdup(label), g_strdup(about), NULL};
	g_array_append_val(d->choices, c);
}

void deskhandDialogButton(DeskhandDialog *d, const char *label, int needs, int enter) {
	Button b = {g_strdup(label), needs != 0, enter != 0, NULL};
	g_array_append_val(d->buttons, b);
}

void deskhandDialogPlain(DeskhandDialog *d, const char *label) { d->plain = g_strdup(label); }

static void freeDialog(DeskhandDialog *d) {
	if (d->timer) g_source_remove(d->timer);
	g_clear_object(&d->none);
	g_array_free(d->lines, TRUE), g_array_free(d->choices, TRUE), g_array_free(d->buttons, TRUE);
	g_free(d->title), g_free(d->heading), g_free(d->about), g_free(d->plain);
	g_free(d);
}

/* Tells what was pressed, with what was chosen, and takes the dialog away. */
static void finish(DeskhandDialog *d, int pressed) {
	if (d->ending) return;
	d->ending = TRUE;
	GString *chosen = g_string_new(NULL);
	for (guint i = 0; i < d->choices->len; i++)
		if (CHOICE(d, i)->box && gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(CHOICE(d, i)->box))) g_string_append_printf(chosen, "%u ", i);
	char *own = g_strdup(d->entry ? gtk_entry_get_text(GTK_ENTRY(d->entry)) : "");
	gtk_widget_destroy(d->window);
	deskhandDialogDone(d->id, pressed, chosen->str, own);
	g_string_free(chosen, TRUE);
	g_free(own);
	freeDialog(d);
}

static gboolean answerable(DeskhandDialog *d) {
	for (guint i = 0; i < d->choices->len; i++)
		if (gtk_toggle_button_get_active(GTK_TOGGLE_BUTTON(CHOICE(d, i)->box))) return TRUE;
	if (!d->entry) return FALSE;
	char *text = g_strstrip(g_strdup(gtk_entry_get_text(GTK_ENTRY(d->entry))));
	gboolean any = *text != '\0';
	g_free(text);
	return any;
}

static void update(DeskhandDialog *d) {
	gboolean some = answerable(d);
	for (guint i = 0; i < d->buttons->len; i++) gtk_widget_set_sensitive(BUTTON(d, i)->widget, d->ready && (some || !BUTTON(d, i)->needs));
	if (d->later) gtk_widget_set_sensitive(d->later, d->ready);
	if (d->open) gtk_widget_set_sensitive(d->open, d->ready);
}

static gboolean onGuardOver(gpointer p) {
	DeskhandDialog *d = p;
	d->timer = 0, d->ready = TRUE;
	update(d);
	return G_SOURCE_REMOVE;
}

static gboolean onMap(GtkWidget *window, GdkEvent *unused, gpointer p) {
	DeskhandDialog *d = p;
	if (!d->ready && !d->timer) d->timer = g_timeout_add(d->guard, onGuardOver, d);
	return FALSE;
}

static gboolean onDelete(GtkWidget *window, GdkEvent *unused, gpointer p) {
	finish(p, LATER);
	return TRUE;
}

static void onButton(GtkWidget *button, gpointer p) {
	DeskhandDialog *d = p;
	if (!d->ready) return;
	if (button == d->later) finish(d, LATER);
	else if (button == d->open) finish(d, OPEN);
	else
		for (guint i = 0; i < d->buttons->len; i++)
			if (BUTTON(d, i)->widget == button) {
				finish(d, (int)i);
				return;
			}
}

/* One of several that exclude each other: words of one's own and a choice do, too. */
static void onChosen(GtkToggleButton *box, gpointer p) {
	DeskhandDialog *d = p;
	if (!d->several && d->entry && gtk_toggle_button_get_active(box)) gtk_entry_set_text(GTK_ENTRY(d->entry), "");
	update(d);
}

static void onTyped(GtkEditable *entry, gpointer p) {
	DeskhandDialog *d = p;
	if (!d->several && d->none && *gtk_entry_get_text(GTK_ENTRY(entry))) gtk_toggle_button_set_active(GTK_TOGGLE_BUTTON(d->none), TRUE);
	update(d);
}

static void onEnter(GtkEntry *entry, gpointer p) {
	DeskhandDialog *d = p;
	for (guint i = 0; d->ready && i < d->buttons->len; i++)
		if (BUTTON(d, i)->enter && gtk_widget_get_sensitive(BUTTON(d, i)->widget)) {
			finish(d, (int)i);
			return;
		}
}

/* Escape closes, which answers nothing. A digit takes the choice of that number, and sends nothing. */
static gboolean onKey(GtkWidget *window, GdkEventKey *e, gpointer p) {
	DeskhandDialog *d = p;
	if (e->keyval == GDK_KEY_Escape) {
		if (d->ready) finish(d, LATER);
		return TRUE;
	}
	if (!d->ready) return e->keyval != GDK_KEY_Tab && e->keyval != GDK_KEY_ISO_Left_Tab;
	if (d->entry && gtk_widget_is_focus(d->entry)) return FALSE;
	guint n = gdk_keyval_to_unicode(e->keyval);
	if ((e->state & gtk_accelerator_get_default_mod_mask()) || n < '1' || n > '9' || n - '1' >= d->choices->len) return FALSE;
	GtkToggleButton *box = GTK_TOGGLE_BUTTON(CHOICE(d, n - '1')->box);
	gtk_toggle_button_set_active(box, !d->several || !gtk_toggle_button_get_active(box));
	gtk_widget_grab_focus(GTK_WIDGET(box));
	return TRUE;
}

static void onScrolled(GtkAdjustment *a, gpointer more) {
	gtk_widget_set_opacity(more, gtk_adjustment_get_value(a) + gtk_adjustment_get_page_size(a) + 1 < gtk_adjustment_get_upper(a) ? 1 : 0);
}

/* A text of more characters than fit is wrapped, at a width that is fixed: else GTK makes room for it at its narrowest. */
static GtkWidget *label(const char *text, gboolean dim, int fit) {
	GtkWidget *l = gtk_label_new(text);
	gtk_label_set_xalign(GTK_LABEL(l), 0);
	if (g_utf8_strlen(text, -1) > fit) {
		gtk_label_set_line_wrap(GTK_LABEL(l), TRUE);
		gtk_label_set_line_wrap_mode(GTK_LABEL(l), PANGO_WRAP_WORD_CHAR);
		gtk_label_set_width_chars(GTK_LABEL(l), fit);
		gtk_label_set_max_width_chars(GTK_LABEL(l), fit);
	}
	if (dim) gtk_style_context_add_class(gtk_widget_get_style_context(l), GTK_STYLE_CLASS_DIM_LABEL);
	return l;
}

static GtkWidget *headingOf(DeskhandDialog *d) {
	GtkWidget *l = label(d->heading, FALSE, 56);
	PangoAttrList *bold = pango_attr_list_new();
	pango_attr_list_insert(bold, pango_attr_weight_new(PANGO_WEIGHT_BOLD));
	pango_attr_list_insert(bold, pango_attr_scale_new(1.15));
	gtk_label_set_attributes(GTK_LABEL(l), bold);
	pango_attr_list_unref(bold);
	return l;
}

/* The text. The base direction is fixed: in a command no letter turns what stands beside it. */
static void fill(DeskhandDialog *d) {
	GtkTextBuffer *b = gtk_text_view_get_buffer(GTK_TEXT_VIEW(d->view));
	GdkRGBA dim, added = {0.25, 0.7, 0.5, 0.22}, removed = {0.9, 0.38, 0.3, 0.22};
	gtk_style_context_get_color(gtk_widget_get_style_context(d->view), GTK_STATE_FLAG_NORMAL, &dim);
	dim.alpha *= 0.6;
	GtkTextTag *tags[] = {
		gtk_text_buffer_create_tag(b, NULL, "direction", GTK_TEXT_DIR_LTR, NULL),
		gtk_text_buffer_create_tag(b, NULL, "weight", PANGO_WEIGHT_BOLD, NULL),
		gtk_text_buffer_create_tag(b, NULL, "foreground-rgba", &dim, NULL),
		gtk_text_buffer_create_tag(b, NULL, "paragraph-background-rgba", &added, NULL),
		gtk_text_buffer_create_tag(b, NULL, "paragraph-background-rgba", &removed, NULL),
	};
	GtkTextIter end;
	gtk_text_buffer_get_end_iter(b, &end);
	for (guint i = 0; i < d->lines->len; i++) {
		Line *l = &g_array_index(d->lines, Line, i);
		GtkTextTag *style = tags[l->style >= 0 && l->style < (int)G_N_ELEMENTS(tags) ? l->style : 0];
		gtk_text_buffer_insert_with_tags(b, &end, l->text, -1, tags[0], style, NULL);
		if (l->goes) gtk_text_buffer_insert_with_tags(b, &end, "\xe2\x86\xa9", -1, tags[0], tags[2], NULL);
		if (i + 1 < d->lines->len) gtk_text_buffer_insert_with_tags(b, &end, "\n", -1, tags[0], style, NULL);
	}
	gtk_text_buffer_get_start_iter(b, &end);
	gtk_text_buffer_place_cursor(b, &end);
}

/* So that the text has no more room than it needs; the view itself would ask for that of the narrowest window. */
static int heightOf(DeskhandDialog *d) {
	PangoLayout *one = gtk_widget_create_pango_layout(d->view, "X");
	int rows = 0, high;
	pango_layout_get_pixel_size(one, NULL, &high);
	g_object_unref(one);
	for (guint i = 0; i < d->lines->len && rows < HIGHEST; i++) rows += 1 + g_utf8_strlen(g_array_index(d->lines, Line, i).text, -1) / ROW;
	return MIN(HIGHEST, rows * high + 14);
}

static GtkWidget *textOf(DeskhandDialog *d) {
	d->view = gtk_text_view_new();
	GtkTextView *v = GTK_TEXT_VIEW(d->view);
	gtk_text_view_set_editable(v, FALSE);
	gtk_text_view_set_cursor_visible(v, FALSE);
	gtk_text_view_set_accepts_tab(v, FALSE);
	gtk_text_view_set_monospace(v, d->code);
	gtk_text_view_set_wrap_mode(v, d->code ? GTK_WRAP_CHAR : GTK_WRAP_WORD_CHAR);
	gtk_text_view_set_left_margin(v, 8), gtk_text_view_set_right_margin(v, 8);
	gtk_text_view_set_top_margin(v, 6), gtk_text_view_set_bottom_margin(v, 6);
	atk_object_set_name(gtk_widget_get_accessible(d->view), d->heading);
	fill(d);

	GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
	GtkScrolledWindow *s = GTK_SCROLLED_WINDOW(scrolled);
	gtk_scrolled_window_set_policy(s, GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
	gtk_scrolled_window_set_shadow_type(s, GTK_SHADOW_IN);
	gtk_scrolled_window_set_overlay_scrolling(s, FALSE);
	gtk_scrolled_window_set_min_content_height(s, heightOf(d));
	gtk_container_add(GTK_CONTAINER(scrolled), d->view);
	d->more = label("\xe2\x86\x93 More below", TRUE, ROW);
	GtkAdjustment *a = gtk_scrolled_window_get_vadjustment(s);
	g_signal_connect_object(a, "changed", G_CALLBACK(onScrolled), d->more, 0);
	g_signal_connect_object(a, "value-changed", G_CALLBACK(onScrolled), d->more, 0);
	gtk_widget_set_opacity(d->more, 0);
	return scrolled;
}

static GtkWidget *choiceOf(DeskhandDialog *d, Choice *c) {
	c->box = d->several ? gtk_check_button_new() : gtk_radio_button_new_from_widget(GTK_RADIO_BUTTON(d->none));
	GtkWidget *texts = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
	gtk_container_add(GTK_CONTAINER(texts), label(c->label, FALSE, ROW));
	if (*c->about) gtk_container_add(GTK_CONTAINER(texts), label(c->about, TRUE, ROW));
	gtk_container_add(GTK_CONTAINER(c->box), texts);
	atk_object_set_name(gtk_widget_get_accessible(c->box), c->label);
	g_signal_connect(c->box, "toggled", G_CALLBACK(onChosen), d);
	return c->box;
}

static void addChoices(DeskhandDialog *d, GtkBox *column) {
	if (d->choices->len) {
		if (!d->several) d->none = g_object_ref_sink(gtk_radio_button_new(NULL)); /* is chosen while no other is, and is not shown */
		GtkWidget *list = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6), *scrolled = gtk_scrolled_window_new(NULL, NULL);
		gtk_widget_set_margin_end(list, 4);
		for (guint i = 0; i < d->choices->len; i++) gtk_container_add(GTK_CONTAINER(list), choiceOf(d, CHOICE(d, i)));
		gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
		gtk_scrolled_window_set_overlay_scrolling(GTK_SCROLLED_WINDOW(scrolled), FALSE);
		gtk_scrolled_window_set_max_content_height(GTK_SCROLLED_WINDOW(scrolled), 260);
		gtk_scrolled_window_set_propagate_natural_height(GTK_SCROLLED_WINDOW(scrolled), TRUE);
		gtk_container_add(GTK_CONTAINER(scrolled), list);
		gtk_box_pack_start(column, scrolled, FALSE, TRUE, 0);
	}
	if (d->own) {
		d->entry = gtk_entry_new();
		gtk_entry_set_placeholder_text(GTK_ENTRY(d->entry), d->choices->len ? "Or in your own words" : "Your answer");
		atk_object_set_name(gtk_widget_get_accessible(d->entry), "Your own answer");
		g_signal_connect(d->entry, "changed", G_CALLBACK(onTyped), d);
		g_signal_connect(d->entry, "activate", G_CALLBACK(onEnter), d);
		gtk_box_pack_start(column, d->entry, FALSE, TRUE, 0);
	}
}

static GtkWidget *pushed(DeskhandDialog *d, const char *text) {
	GtkWidget *b = gtk_button_new(), *l = label(text, FALSE, 40);
	gtk_label_set_xalign(GTK_LABEL(l), 0.5);
	gtk_container_add(GTK_CONTAINER(b), l);
	gtk_widget_set_can_default(b, FALSE);
	atk_object_set_name(gtk_widget_get_accessible(b), text);
	g_signal_connect(b, "clicked", G_CALLBACK(onButton), d);
	return b;
}

/* What answers nothing stands first: a Tab and a Return that were meant for another window end there. */
static void addButtons(DeskhandDialog *d, GtkBox *column) {
	glong width = 0;
	for (guint i = 0; i < d->buttons->len; i++) width += g_utf8_strlen(BUTTON(d, i)->label, -1) + 4;
	gboolean beside = width <= 52, stacked = width > 84;
	GtkWidget *row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 8), *answers = gtk_box_new(stacked ? GTK_ORIENTATION_VERTICAL : GTK_ORIENTATION_HORIZONTAL, 8);
	d->later = pushed(d, d->plain ? d->plain : "Later");
	if (d->plain && d->buttons->len) gtk_box_pack_start(GTK_BOX(row), d->later, FALSE, FALSE, 0);
	else if (d->plain) gtk_box_pack_end(GTK_BOX(row), d->later, FALSE, FALSE, 0);
	else {
		d->open = pushed(d, "Open in Deskhand");
		gtk_box_pack_start(GTK_BOX(row), d->open, FALSE, FALSE, 0);
		gtk_box_pack_start(GTK_BOX(row), d->later, FALSE, FALSE, 0);
	}
	for (guint i = 0; i < d->buttons->len; i++) {
		BUTTON(d, i)->widget = pushed(d, BUTTON(d, i)->label);
		gtk_box_pack_start(GTK_BOX(answers), BUTTON(d, i)->widget, FALSE, TRUE, 0);
	}
	gtk_box_pack_start(column, row, FALSE, TRUE, 0);
	if (beside) gtk_box_pack_end(GTK_BOX(row), answers, FALSE, FALSE, 0);
	else gtk_box_pack_start(column, answers, FALSE, TRUE, 0);
	if (!beside && !stacked) gtk_widget_set_halign(answers, GTK_ALIGN_END);
}

static GtkWidget *appWindow(void) {
	GtkWidget *found = NULL;
	GList *all = gtk_window_list_toplevels();
	for (GList *i = all; i && !found; i = i->next)
		if (gtk_window_get_icon(GTK_WINDOW(i->data))) found = i->data;
	g_list_free(all);
	return found;
}

static gboolean showIdle(gpointer p) {
	DeskhandDialog *d = p;
	d->window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
	GtkWindow *w = GTK_WINDOW(d->window);
	g_object_set_data(G_OBJECT(w), NAME, d);
	gtk_window_set_title(w, d->title);
	gtk_window_set_type_hint(w, GDK_WINDOW_TYPE_HINT_DIALOG);
	gtk_window_set_position(w, GTK_WIN_POS_CENTER);
	gtk_window_set_default_size(w, WIDTH, -1);
	gtk_window_set_urgency_hint(w, TRUE);
	GtkWidget *app = appWindow();
	if (app) gtk_window_set_icon(w, gtk_window_get_icon(GTK_WINDOW(app)));
	GtkWindowGroup *group = gtk_window_group_new();
	gtk_window_group_add_window(group, w);
	g_object_unref(group);
	atk_object_set_role(gtk_widget_get_accessible(d->window), ATK_ROLE_ALERT);

	GtkWidget *column = gtk_box_new(GTK_ORIENTATION_VERTICAL, 10);
	gtk_container_set_border_width(GTK_CONTAINER(column), 16);
	gtk_container_add(GTK_CONTAINER(w), column);
	gtk_box_pack_start(GTK_BOX(column), headingOf(d), FALSE, TRUE, 0);
	if (*d->about) gtk_box_pack_start(GTK_BOX(column), label(d->about, TRUE, ROW), FALSE, TRUE, 0);
	gtk_box_pack_start(GTK_BOX(column), textOf(d), TRUE, TRUE, 0);
	gtk_box_pack_start(GTK_BOX(column), d->more, FALSE, TRUE, 0);
	gtk_widget_set_no_show_all(d->more, heightOf(d) < HIGHEST);
	addChoices(d, GTK_BOX(column));
	addButtons(d, GTK_BOX(column));
	update(d);

	g_signal_connect(w, "map-event", G_CALLBACK(onMap), d);
	g_signal_connect(w, "delete-event", G_CALLBACK(onDelete), d);
	g_signal_connect(w, "key-press-event", G_CALLBACK(onKey), d);
	gtk_widget_show_all(column);
	gtk_widget_grab_focus(d->view);
	gtk_window_present(w);
	return G_SOURCE_REMOVE;
}

void deskhandDialogShow(DeskhandDialog *d, int guard) {
	d->guard = guard;
	g_idle_add_full(G_PRIORITY_DEFAULT, showIdle, d, NULL);
}

static gboolean withdrawIdle(gpointer p) {
	uintptr_t id = *(uintptr_t *)p;
	DeskhandDialog *found = NULL;
	GList *all = gtk_window_list_toplevels();
	for (GList *i = all; i; i = i->next) {
		DeskhandDialog *d = g_object_get_data(G_OBJECT(i->data), NAME);
		if (d && d->id == id && !d->ending) found = d;
	}
	g_list_free(all);
	if (found) finish(found, GONE);
	g_free(p);
	return G_SOURCE_REMOVE;
}

/* A dialog that asks by itself, of no request, may be behind the window when it is asked for again. */
static gboolean presentIdle(gpointer unused) {
	GList *all = gtk_window_list_toplevels();
	for (GList *i = all; i; i = i->next) {
		DeskhandDialog *d = g_object_get_data(G_OBJECT(i->data), NAME);
		if (d && d->plain && d->buttons->len) gtk_window_present(GTK_WINDOW(i->data));
	}
	g_list_free(all);
	return G_SOURCE_REMOVE;
}

void deskhandDialogPresent(void) { g_idle_add_full(G_PRIORITY_DEFAULT, presentIdle, NULL, NULL); }

void deskhandDialogWithdraw(uintptr_t id) {
	g_idle_add_full(G_PRIORITY_DEFAULT, withdrawIdle, g_memdup2(&id, sizeof id), NULL);
}
