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

// windowIsKey reports whether keys go to the app's window or to a sheet of the window, such as a file dialog. While an alert is open,
// windowIsKey is false: a person who answers an alert does not look at the window, and requests shown elsewhere must not be withdrawn.
func windowIsKey() bool { return C.windowIsKey() != 0 }
