//go:build desktop && !bindings

package app

/*
#cgo pkg-config: gtk+-3.0 webkit2gtk-4.1
#include <stdlib.h>
#include <string.h>
#include <gtk/gtk.h>
#include <webkit2/webkit2.h>

#include "dialog_linux.h"

extern void deskhandLinkClicked(char *);
extern void deskhandFocus(uintptr_t, int);
extern void deskhandPageDied(uintptr_t, int);

// WebKit hurries to let go of what a page has left behind when its process takes half of the machine's memory, or 1.5 GiB; before that it does
// when it finds time, which a busy machine did not have for half an hour: the page took half a gigabyte. So ours hurries
// from 256 MiB on. It is no limit: a page whose content takes more keeps it. It is looked at every ten minutes: WebKit goes through each
// mapping of the page's process for it, on the thread that draws, and a look every ten seconds was a frame of 55 ms every ten seconds. A context takes such settings when it is
// made only, and the one that every view has by itself is made without: they are put in as its properties are set. (A context of our own
// would be none that Wails knows.)
static void (*setProperty)(GObject *, guint, const GValue *, GParamSpec *);
static void setWithPressure(GObject *context, guint id, const GValue *value, GParamSpec *spec) {
	if (strcmp(spec->name, "memory-pressure-settings") != 0 || g_value_get_boxed(value)) {
		setProperty(context, id, value, spec);
		return;
	}
	WebKitMemoryPressureSettings *settings = webkit_memory_pressure_settings_new();
	webkit_memory_pressure_settings_set_memory_limit(settings, 1024); // MiB; the others are parts of it
	webkit_memory_pressure_settings_set_conservative_threshold(settings, 0.2);
	webkit_memory_pressure_settings_set_strict_threshold(settings, 0.25);
	webkit_memory_pressure_settings_set_poll_interval(settings, 600);
	GValue ours = G_VALUE_INIT;
	g_value_init(&ours, WEBKIT_TYPE_MEMORY_PRESSURE_SETTINGS);
	g_value_take_boxed(&ours, settings);
	setProperty(context, id, &ours, spec);
	g_value_unset(&ours);
}
static void makeContext(void) {
	GObjectClass *class = g_type_class_ref(WEBKIT_TYPE_WEB_CONTEXT);
	setProperty = class->set_property;
	class->set_property = setWithPressure;
	webkit_web_context_get_default();
	class->set_property = setProperty;
	g_type_class_unref(class);
}

// The page's own garbage is collected whole each time. WebKit goes through what is old only every few minutes, and on a busy machine not for
// half an hour; with each element that has left the page it keeps what drawing it took, so that a page of 120 MiB in which answers stream
// took 50 MiB more a minute. Collecting whole takes no more of the processor there: what lives is little. The variable is WebKit's own
// (JSC_…), for its processes: Go's list of variables is of the start, so that no agent inherits it.
//
// And it is collected when half as much again has come as was alive, where WebKit waits for three times as much (for as much, on a machine
// with less than 16 GiB): what is left behind meanwhile is spread over the memory between what stays, and WebKit seldom gets the room
// between back. With three streams of 600 chunks/s the page was at 125 to 185 MiB and rising, with this at 116 to 129.
//
// The last of its compilers is left out: for each place where what it has compiled may have to be left it keeps a list of all values
// there, and more is compiled for hours. Three streams of 300 chunks/s for five minutes took the page from 93 to 97 MiB and went on; without
// it stays at 90, and no frame takes longer.
static void collectEagerly(void) {
	g_setenv("JSC_useGenerationalGC", "0", FALSE);
	g_setenv("JSC_heapGrowthMaxIncrease", "0.5", FALSE);
	g_setenv("JSC_smallHeapGrowthFactor", "1.5", FALSE);
	g_setenv("JSC_useFTLJIT", "0", FALSE);
}

// The window draws without the GPU (WebviewGpuPolicyNever), but GDK and WebKit look at it all the same, and keep 25 MiB of drivers
// for it in this process. So neither sees one while it looks. The variables are gone again before there is a child that would
// inherit them: WebKit's own processes cannot do without, and agents have no business with our choice.
static int openDisplay(const char *name) {
	g_set_prgname(name); // before there is a window: its class, by which a panel finds our .desktop file, is taken from here
	int gdk = g_getenv("GDK_GL") == NULL && g_setenv("GDK_GL", "disable", TRUE);
	int open = gtk_init_check(NULL, NULL);
	if (gdk) g_unsetenv("GDK_GL");
	if (!open) return 0;
	int egl = g_getenv("__EGL_VENDOR_LIBRARY_FILENAMES") == NULL && g_setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/dev/null", TRUE);
	collectEagerly();
	makeContext(); // looks now
	if (egl) g_unsetenv("__EGL_VENDOR_LIBRARY_FILENAMES");
	return 1;
}

// As WebKit decides prefers-color-scheme.
static int prefersDark(void) {
	gboolean dark = FALSE;
	gchar *theme = NULL;
	g_object_get(gtk_settings_get_default(), "gtk-application-prefer-dark-theme", &dark, "gtk-theme-name", &theme, NULL);
	const char *forced = g_getenv("GTK_THEME");
	if (forced && *forced)
		dark = dark || g_str_has_suffix(forced, "-dark") || g_str_has_suffix(forced, "-Dark") || g_str_has_suffix(forced, ":dark");
	else if (theme)
		dark = dark || g_str_has_suffix(theme, "-dark") || g_str_has_suffix(theme, "-Dark");
	g_free(theme);
	return dark;
}

static GtkWidget *mainWindow(void) {
	GtkWidget *found = NULL;
	GList *all = gtk_window_list_toplevels();
	for (GList *i = all; i && !found; i = i->next)
		if (gtk_window_get_window_type(i->data) == GTK_WINDOW_TOPLEVEL && !GTK_IS_DIALOG(i->data) && !deskhandIsDialog(i->data)) found = i->data;
	g_list_free(all);
	return found;
}

static void findView(GtkWidget *w, gpointer found) {
	if (WEBKIT_IS_WEB_VIEW(w)) *(GtkWidget **)found = w;
	else if (GTK_IS_CONTAINER(w)) gtk_container_foreach(GTK_CONTAINER(w), findView, found);
}

static gboolean stay(WebKitWebView *view, WebKitPolicyDecision *decision, WebKitPolicyDecisionType type, gpointer unused) {
	if (type != WEBKIT_POLICY_DECISION_TYPE_NAVIGATION_ACTION && type != WEBKIT_POLICY_DECISION_TYPE_NEW_WINDOW_ACTION) return FALSE;
	WebKitNavigationAction *action = webkit_navigation_policy_decision_get_navigation_action(WEBKIT_NAVIGATION_POLICY_DECISION(decision));
	const char *uri = webkit_uri_request_get_uri(webkit_navigation_action_get_request(action));
	if (type == WEBKIT_POLICY_DECISION_TYPE_NAVIGATION_ACTION && (g_str_has_prefix(uri, "wails://wails/") || g_str_has_prefix(uri, "about:"))) return FALSE;
	webkit_policy_decision_ignore(decision);
	if (webkit_navigation_action_get_navigation_type(action) == WEBKIT_NAVIGATION_TYPE_LINK_CLICKED) deskhandLinkClicked((char *)uri);
	return TRUE;
}

static GtkWidget *mainView(void) {
	GtkWidget *window = mainWindow(), *view = NULL;
	if (window) findView(window, &view);
	return view;
}

// A page whose process has died, of memory or of a fault of WebKit's, leaves the window blank for good, while agents work on behind it. It is
// loaded anew: at once, and later each time where it does not live for ten seconds. What had taken it down may be the conversation that it
// opens; that is the page's own affair (frontend/src/shell/survived.ts).
static gint64 loadedAt; // in microseconds
static guint wait;      // seconds
static gboolean loadAnew(gpointer unused) {
	GtkWidget *view = mainView();
	loadedAt = g_get_monotonic_time();
	if (view) webkit_web_view_load_uri(WEBKIT_WEB_VIEW(view), "wails://wails/");
	return G_SOURCE_REMOVE;
}
static void pageDied(WebKitWebView *view, WebKitWebProcessTerminationReason reason, gpointer to) {
	if (reason == WEBKIT_WEB_PROCESS_TERMINATED_BY_API) return;
	wait = g_get_monotonic_time() - loadedAt > 10 * G_USEC_PER_SEC ? 0 : MIN(MAX(1, 2 * wait), 30);
	deskhandPageDied((uintptr_t)to, (int)wait);
	g_timeout_add_seconds(wait, loadAnew, NULL);
}

static gboolean guardPageIdle(gpointer to) {
	GtkWidget *view = mainView();
	if (!view) return G_SOURCE_REMOVE;
	loadedAt = g_get_monotonic_time();
	g_signal_connect(view, "decide-policy", G_CALLBACK(stay), NULL);
	g_signal_connect(view, "web-process-terminated", G_CALLBACK(pageDied), to);
	return G_SOURCE_REMOVE;
}
static void guardPage(uintptr_t to) { g_idle_add(guardPageIdle, (gpointer)to); }

static gboolean dismissIdle(gpointer unused) {
	GList *all = gtk_window_list_toplevels();
	for (GList *i = all; i; i = i->next)
		if (GTK_IS_DIALOG(i->data)) gtk_dialog_response(GTK_DIALOG(i->data), GTK_RESPONSE_CANCEL);
		else if (deskhandIsDialog(i->data)) gtk_window_close(GTK_WINDOW(i->data));
	g_list_free(all);
	return G_SOURCE_REMOVE;
}
static void dismissDialogs(void) { g_idle_add(dismissIdle, NULL); }

// The focus as the window knows it; one that is not on the screen has none.
static void tellFocus(GtkWidget *window, gpointer to) {
	deskhandFocus((uintptr_t)to, gtk_window_is_active(GTK_WINDOW(window)) && gtk_widget_get_mapped(window));
}
static void onActive(GtkWidget *window, GParamSpec *unused, gpointer to) { tellFocus(window, to); }
static gboolean onMapped(GtkWidget *window, GdkEvent *unused, gpointer to) {
	tellFocus(window, to);
	return FALSE;
}
static gboolean watchFocusIdle(gpointer to) {
	GtkWidget *window = mainWindow();
	if (!window) return G_SOURCE_REMOVE;
	g_signal_connect(window, "notify::is-active", G_CALLBACK(onActive), to);
	g_signal_connect_after(window, "map-event", G_CALLBACK(onMapped), to);
	g_signal_connect_after(window, "unmap-event", G_CALLBACK(onMapped), to);
	tellFocus(window, to);
	return G_SOURCE_REMOVE;
}
static void watchFocus(uintptr_t to) { g_idle_add(watchFocusIdle, (gpointer)to); }

// The caret stands still, like everything here that nobody has moved: while it blinks WebKit keeps its display timer running, 70 to 130 ms of
// CPU in ten seconds, for a window that rests. That is said as a blink that takes the longest time there is, 24 days. With gtk-cursor-blink
// turned off WebKit (2.50) waits no time at all before it looks again, once something was typed: 60 times a second, 4 % of a core.
// To turn that off after a while, as GTK's own fields do, left a caret that was hidden.
//
// Where there is no GPU the processor draws every step of an animation. The page asks for prefers-reduced-motion, which is GTK's setting.
static gboolean calmIdle(gpointer gpu) {
	GtkSettings *settings = gtk_settings_get_default();
	g_object_set(settings, "gtk-cursor-blink", TRUE, "gtk-cursor-blink-time", G_MAXINT, NULL);
	if (!gpu) g_object_set(settings, "gtk-enable-animations", FALSE, NULL);
	return G_SOURCE_REMOVE;
}
static void calm(int gpu) { g_idle_add(calmIdle, GINT_TO_POINTER(gpu)); }

typedef struct { int x, y; } Place;

// Only to where a screen still shows the title bar.
static gboolean moveIdle(gpointer place) {
	Place *p = place;
	GtkWidget *window = mainWindow();
	if (window) {
		int width, height;
		gtk_window_get_size(GTK_WINDOW(window), &width, &height);
		GdkDisplay *display = gtk_widget_get_display(window);
		for (int i = 0; i < gdk_display_get_n_monitors(display); i++) {
			GdkRectangle area, bar = {p->x, p->y, width, 24}, seen;
			gdk_monitor_get_workarea(gdk_display_get_monitor(display, i), &area);
			if (gdk_rectangle_intersect(&area, &bar, &seen) && seen.width >= 96 && seen.height == 24) {
				gtk_window_move(GTK_WINDOW(window), p->x, p->y);
				break;
			}
		}
	}
	g_free(p);
	return G_SOURCE_REMOVE;
}
// Wails centres the window when the loop starts; this comes after it.
static void moveWindow(int x, int y) {
	Place *p = g_new(Place, 1);
	p->x = x, p->y = y;
	g_idle_add_full(G_PRIORITY_LOW, moveIdle, p, NULL);
}
*/
import "C"

import (
	"os"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// programName is the window's class.
const programName = "deskhand"

// openDisplay connects to the screen, so that a machine without one is an error of ours and not a panic of Wails'.
func openDisplay() error {
	runtime.LockOSThread() // GTK belongs to the thread that it was opened on; Wails goes on with it
	spareGPU(func(path string) bool { _, err := os.Stat(path); return err == nil })
	name := C.CString(programName)
	defer C.free(unsafe.Pointer(name))
	if C.openDisplay(name) == 0 {
		return ErrNoDisplay
	}
	return nil
}

// prefersDark says whether the page will be dark. It must follow openDisplay.
func prefersDark() bool { return C.prefersDark() != 0 }

// guardPage keeps the page in the window: WebKitGTK navigates to a dropped file, and to any link, and shows nothing any more when the page's
// process dies. died is told in how many seconds it is loaded anew then.
func guardPage(died func(wait int)) { C.guardPage(C.uintptr_t(cgo.NewHandle(died))) } // as long as the window

//export deskhandPageDied
func deskhandPageDied(to C.uintptr_t, wait C.int) {
	if died, ok := cgo.Handle(to).Value().(func(int)); ok {
		died(int(wait))
	}
}

// calm lets the caret stand still, and everything else where there is no GPU. To be called before the page has a caret.
func calm() {
	gpu := C.int(0)
	if _, err := os.Stat("/dev/dri"); err == nil {
		gpu = 1
	}
	C.calm(gpu)
}

// dismissDialogs answers every open dialog as Escape would.
func dismissDialogs() { C.dismissDialogs() }

// moveWindow puts the window where it was, if that place is still on a screen.
func moveWindow(x, y int) { C.moveWindow(C.int(x), C.int(y)) }

//export deskhandLinkClicked
func deskhandLinkClicked(link *C.char) {
	go func(link string) { _ = openLink(link) }(C.GoString(link)) // not on GTK's thread; there is nobody to tell
}

// watchFocus tells whether the window has the focus. What is not taken in time gives way to what is newer.
func watchFocus() <-chan bool {
	focus := make(chan bool, 1)
	C.watchFocus(C.uintptr_t(cgo.NewHandle(focus))) // as long as the window
	return focus
}

//export deskhandFocus
func deskhandFocus(to C.uintptr_t, focused C.int) {
	focus, _ := cgo.Handle(to).Value().(chan bool)
	select {
	case <-focus:
	default:
	}
	focus <- focused != 0 // there is room: GTK's thread alone sends
}
