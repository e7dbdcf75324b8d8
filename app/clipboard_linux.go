//go:build desktop && !bindings

package app

/*
#cgo pkg-config: gtk+-3.0
#include <gtk/gtk.h>

extern void deskhandClipboard(uintptr_t, char *, int);

// The bytes are passed on as they are: whatever may be wrong with them, GTK's own loaders do not get to see them.
static void gotPicture(GtkClipboard *from, GtkSelectionData *data, gpointer to) {
	deskhandClipboard((uintptr_t)to, (char *)gtk_selection_data_get_data(data), gtk_selection_data_get_length(data));
}
static gboolean askIdle(gpointer to) {
	gtk_clipboard_request_contents(gtk_clipboard_get(GDK_SELECTION_CLIPBOARD), gdk_atom_intern_static_string("image/png"), gotPicture, to);
	return G_SOURCE_REMOVE;
}
static void askClipboard(uintptr_t to) { g_idle_add(askIdle, (gpointer)to); }
*/
import "C"

import (
	"context"
	"runtime/cgo"
	"time"
	"unsafe"
)

// clipboardPicture returns the picture on the clipboard as a PNG, empty when there is none: WebKitGTK gives the page no pasted pictures.
// The program that copied the picture is asked for the bytes, for a limited time.
func clipboardPicture(ctx context.Context) []byte {
	ctx, end := context.WithTimeout(ctx, 4*time.Second)
	defer end()
	got := make(chan []byte, 1) // GTK's thread does not wait for us
	C.askClipboard(C.uintptr_t(cgo.NewHandle(got)))
	select {
	case data := <-got:
		return data
	case <-ctx.Done():
		return nil
	}
}

//export deskhandClipboard
func deskhandClipboard(to C.uintptr_t, data *C.char, length C.int) {
	handle := cgo.Handle(to)
	got, _ := handle.Value().(chan []byte)
	handle.Delete()
	if length <= 0 || data == nil {
		got <- nil
		return
	}
	got <- C.GoBytes(unsafe.Pointer(data), length)
}
