/* Puts a picture on the clipboard, as a program for screenshots does, and keeps it there: clipboard PATH. Prints "ready". */
#include <gtk/gtk.h>
#include <stdio.h>

int main(int argc, char **argv) {
	gtk_init(&argc, &argv);
	if (argc != 2) return 2;
	GdkPixbuf *picture = gdk_pixbuf_new_from_file(argv[1], NULL);
	if (!picture) return 2;
	gtk_clipboard_set_image(gtk_clipboard_get(GDK_SELECTION_CLIPBOARD), picture);
	puts("ready");
	fflush(stdout);
	gtk_main();
	return 0;
}
