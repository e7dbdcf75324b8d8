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

// WebKit frees a page's garbage quickly when the page's process uses half of the machine's memory, or 1.5 GiB; below that WebKit frees
// garbage when idle, which did not happen on a busy machine for half an hour: the page used half a gigabyte. So this limit makes WebKit
// hurry from 256 MiB on. The setting limits nothing: a page with more content keeps its memory. WebKit checks the size every ten minutes,
// because each check reads every mapping of the page's process, on the thread that draws; a check every ten seconds cost a frame of 55 ms
// every ten seconds. A context accepts such settings only at construction, and the default context of every view is made without them, so
// the settings are added while the context's properties are set. (Wails would not know a context of our own.)
static void (*setProperty)(GObject *, guint, const GValue *, GParamSpec *);
static void setWithPressure(GObject *context, guint id, const GValue *value, GParamSpec *spec) {
	if (strcmp(spec->name, "memory-pressure-settings") != 0 || g_value_get_boxed(value)) {
		setProperty(context, id, value, spec);
		return;
	}
	WebKitMemoryPressureSettings *settings = webkit_memory_pressure_settings_new();
	webkit_memory_pressure_settings_set_memory_limit(settings, 1024); // MiB; the other thresholds are fractions of this limit
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

// Every garbage collection of the page is a full collection. WebKit collects old objects only every few minutes, and on a busy machine not
// for half an hour; each element removed from the page keeps its rendering data until then, so that a page of 120 MiB with streaming
// answers grew by 50 MiB a minute. Full collections take no more processor time here, since few objects are alive. The variable is WebKit's
// own (JSC_…), for WebKit's processes: Go's list of variables dates from the start, so that no agent inherits the variable.
//
// A collection starts when the new objects amount to half of the live objects, where WebKit waits for three times the live objects (for as
// much as the live objects, on a machine with less than 16 GiB): garbage that accumulates between collections is spread among live objects,
// and WebKit seldom gets that memory back. With three streams of 600 chunks/s the page was at 125 to 185 MiB and rising, with this setting
// at 116 to 129.
//
// The last tier of WebKit's compilers is turned off: for each exit of compiled code that tier keeps a list of all values there, and
// compilation goes on for hours. Three streams of 300 chunks/s for five minutes took the page from 93 to 97 MiB and rising; without the
// tier the page stays at 90 MiB, and no frame takes longer.
static void collectEagerly(void) {
	g_setenv("JSC_useGenerationalGC", "0", FALSE);
	g_setenv("JSC_heapGrowthMaxIncrease", "0.5", FALSE);
	g_setenv("JSC_smallHeapGrowthFactor", "1.5", FALSE);
	g_setenv("JSC_useFTLJIT", "0", FALSE);
}

// The window draws without the GPU (WebviewGpuPolicyNever), but GDK and WebKit probe the GPU all the same, and keep 25 MiB of drivers in
// this process. So the variables hide the GPU during the probe. They are removed before any child could inherit them: WebKit's own
// processes need the GPU's drivers, and our choice must not affect agents.
static int openDisplay(const char *name) {
	g_set_prgname(name); // before the window exists: the window's class, by which a panel finds our .desktop file, comes from this name
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

// A page whose process has died, of memory or of a fault of WebKit's, leaves the window blank for good, while agents work on. So the page
// is loaded again: at once, and later each time that the page has lived for less than ten seconds. The conversation that the page opens may
// be the cause of the death; the page handles that case (frontend/src/shell/survived.ts).
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

// The focus in the window's own state; a window that is not on the screen has no focus.
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

// The caret does not blink: while a caret blinks WebKit keeps its display timer running, 70 to 130 ms of CPU in ten seconds, for an idle
// window. The blink time is set to the longest possible, 24 days. With gtk-cursor-blink turned off, WebKit (2.50) polls without a pause
// once something was typed: 60 times a second, 4 % of a core. Turning the blink off after a while, as GTK's own fields do, left a hidden
// caret.
//
// Without a GPU the processor draws every step of an animation. The page asks for prefers-reduced-motion, which is GTK's setting.
static gboolean calmIdle(gpointer gpu) {
	GtkSettings *settings = gtk_settings_get_default();
	g_object_set(settings, "gtk-cursor-blink", TRUE, "gtk-cursor-blink-time", G_MAXINT, NULL);
	if (!gpu) g_object_set(settings, "gtk-enable-animations", FALSE, NULL);
	return G_SOURCE_REMOVE;
}
static void calm(int gpu) { g_idle_add(calmIdle, GINT_TO_POINTER(gpu)); }

typedef struct { int x, y; } Place;

// The window moves only to a place with its title bar on a screen.
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
// Wails centres the window when the loop starts; this call comes later.
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

// openDisplay connects to the screen, so that a machine without a screen gives an error instead of a panic of Wails.
func openDisplay() error {
	runtime.LockOSThread() // GTK belongs to the thread that opened the display; Wails continues on this thread
	spareGPU(func(path string) bool { _, err := os.Stat(path); return err == nil })
	name := C.CString(programName)
	defer C.free(unsafe.Pointer(name))
	if C.openDisplay(name) == 0 {
		return ErrNoDisplay
	}
	return nil
}

// prefersDark reports whether the page will be dark. prefersDark must follow openDisplay.
func prefersDark() bool { return C.prefersDark() != 0 }

// guardPage keeps the page in the window: WebKitGTK navigates to a dropped file and to any link, and stays blank when the page's process
// dies. died gets the number of seconds until the page is loaded again.
func guardPage(died func(wait int)) { C.guardPage(C.uintptr_t(cgo.NewHandle(died))) } // as long as the window

//export deskhandPageDied
func deskhandPageDied(to C.uintptr_t, wait C.int) {
	if died, ok := cgo.Handle(to).Value().(func(int)); ok {
		died(int(wait))
	}
}

// calm stops the caret's blinking and, without a GPU, all animations. calm must be called before the page has a caret.
func calm() {
	gpu := C.int(0)
	if _, err := os.Stat("/dev/dri"); err == nil {
		gpu = 1
	}
	C.calm(gpu)
}

// dismissDialogs answers every open dialog as Escape would.
func dismissDialogs() { C.dismissDialogs() }

// moveWindow moves the window to its saved place, if that place is still on a screen.
func moveWindow(x, y int) { C.moveWindow(C.int(x), C.int(y)) }

//export deskhandLinkClicked
func deskhandLinkClicked(link *C.char) {
	go func(link string) { _ = openLink(link) }(C.GoString(link)) // not on GTK's thread; there is nobody to tell
}

// watchFocus reports changes of the window's focus. A change that is not received in time is replaced by the newer change.
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
