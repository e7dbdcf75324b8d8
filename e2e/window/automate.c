/* For tests only, preloaded into the program under test: lets WebKitWebDriver drive the window of an unmodified build.
 *
 * The driver starts the program with WEBKIT_INSPECTOR_SERVER set and asks for an automation session. Wails never allows one, so
 * this stands in front of the one function by which Wails makes its view: it allows automation and hands the driver that view
 * instead of a new one. Without the driver it does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <webkit2/webkit2.h>

static WebKitWebView *view;

static WebKitWebView *give_view(WebKitAutomationSession *session, gpointer unused) { return view; }

static void on_started(WebKitWebContext *context, WebKitAutomationSession *session, gpointer unused) {
	WebKitApplicationInfo *info = webkit_application_info_new();
	webkit_application_info_set_name(info, "deskhand-desktop");
	webkit_automation_session_set_application_info(session, info);
	webkit_application_info_unref(info);
	g_signal_connect(session, "create-web-view", G_CALLBACK(give_view), NULL);
}

GtkWidget *webkit_web_view_new_with_user_content_manager(WebKitUserContentManager *manager) {
	if (!getenv("WEBKIT_INSPECTOR_SERVER")) {
		GtkWidget *(*original)(WebKitUserContentManager *) = dlsym(RTLD_NEXT, "webkit_web_view_new_with_user_content_manager");
		return original(manager);
	}
	WebKitWebContext *context = webkit_web_context_get_default();
	webkit_web_context_set_automation_allowed(context, TRUE);
	g_signal_connect(context, "automation-started", G_CALLBACK(on_started), NULL);
	view = g_object_new(WEBKIT_TYPE_WEB_VIEW, "user-content-manager", manager, "is-controlled-by-automation", TRUE, NULL);
	return GTK_WIDGET(view);
}
