// An empty page in a window of WebKit, and nothing else: the least that the idle app is measured beside.
#include <webkit2/webkit2.h>

int main(int argc, char **argv) {
	gtk_init(&argc, &argv);
	GtkWidget *window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
	GtkWidget *view = webkit_web_view_new();
	WebKitSettings *settings = webkit_web_view_get_settings(WEBKIT_WEB_VIEW(view));
	webkit_settings_set_hardware_acceleration_policy(settings, WEBKIT_HARDWARE_ACCELERATION_POLICY_NEVER); // as the app's
	gtk_window_set_default_size(GTK_WINDOW(window), 1200, 800);
	gtk_container_add(GTK_CONTAINER(window), view);
	gtk_widget_show_all(window);
	webkit_web_view_load_html(WEBKIT_WEB_VIEW(view), "<title>Empty</title>", NULL);
	gtk_main();
	return 0;
}
