//go:build desktop && !bindings

package app

/*
#cgo CFLAGS: -x objective-c
#cgo LDFLAGS: -framework Cocoa
#import <Cocoa/Cocoa.h>

static int windowIsKey(void) {
	NSWindow *window = [NSApp mainWindow];
	return [NSApp isActive] && ([window isKeyWindow] || [window attachedSheet] != nil) ? 1 : 0;
}
*/
import "C"

// windowIsKey says whether keys go to the app's window, or to a sheet of it, as file dialogs are. They do not while an alert is open: whoever
// answers that is not in the window, and what is only shown elsewhere would be withdrawn from them.
func windowIsKey() bool { return C.windowIsKey() != 0 }
