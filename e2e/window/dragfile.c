/* A small window, top left on the screen, from which a test drags a real file: dragfile PATH. Offers what file managers offer.
 * Prints "ready" once it can be seen and "dropped" or "refused" after each drag.
 */
#include <gtk/gtk.h>
#include <stdio.h>

static char *uris[2];
static gboolean refused;

static void say(const char *word) {
	puts(word);
	fflush(stdout);
}

static void give(GtkWidget *widget, GdkDragContext *context, GtkSelectionData *to, guint kind, guint time, gpointer unused) {
	if (kind == 0) gtk_selection_data_set_uris(to, uris);
	else gtk_selection_data_set_text(to, uris[0], -1);
}

static gboolean on_failed(GtkWidget *widget, GdkDragContext *context, GtkDragResult result, gpointer unused) {
	refused = TRUE;
	return TRUE; /* no animation back to us, which would take its time */
}

static void on_end(GtkWidget *widget, GdkDragContext *context, gpointer unused) {
	say(refused ? "refused" : "dropped");
	refused = FALSE;
}

static gboolean on_shown(GtkWidget *widget, GdkEvent *event, gpointer unused) {
	say("ready");
	return FALSE;
}

int main(int argc, char **argv) {
	gtk_init(&argc, &argv);
	if (argc != 2) return 2;
	uris[0] = g_filename_to_uri(argv[1], NULL, NULL);
	if (!uris[0]) return 2;

	GtkTargetEntry targets[] = {{"text/uri-list", 0, 0}, {"text/plain", 0, 1}, {"UTF8_STRING", 0, 1}};
	GtkWidget *window = gtk_window_new(GTK_WINDOW_POPUP); /* not the window manager's business */
	GtkWidget *source = gtk_event_box_new();
	gtk_container_add(GTK_CONTAINER(source), gtk_label_new("drag"));
	gtk_container_add(GTK_CONTAINER(window), source);
	gtk_window_set_default_size(GTK_WINDOW(window), 60, 40);
	gtk_window_move(GTK_WINDOW(window), 0, 0);
	gtk_drag_source_set(source, GDK_BUTTON1_MASK, targets, G_N_ELEMENTS(targets), GDK_ACTION_COPY | GDK_ACTION_MOVE);
	g_signal_connect(source, "drag-data-get", G_CALLBACK(give), NULL);
	g_signal_connect(source, "drag-failed", G_CALLBACK(on_failed), NULL);
	g_signal_connect(source, "drag-end", G_CALLBACK(on_end), NULL);
	g_signal_connect(window, "map-event", G_CALLBACK(on_shown), NULL);
	gtk_widget_show_all(window);
	gtk_main();
	return 0;
}
