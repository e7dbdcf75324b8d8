/* Puts a picture on the clipboard, as a program for screenshots does, or a text, and keeps it there: clipboard PATH, clipboard text TEXT.
   Prints "ready". */
#include <gtk/gtk.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
	gtk_init(&argc, &argv);
	GtkClipboard *clipboard = gtk_clipboard_get(GDK_SELECTION_CLIPBOARD);
	if (argc == 3 && !strcmp(argv[1], "text")) {
		gtk_clipboard_set_text(clipboard, argv[2], -1);
	} else {
		GdkPixbuf *picture = argc == 2 ? gdk_pixbuf_new_from_file(argv[1], NULL) : NULL;
		if (!picture) return 2;
		gtk_clipboard_set_image(clipboard, picture);
	}
	puts("ready");
	fflush(stdout);
	gtk_main();
	return 0;
}
