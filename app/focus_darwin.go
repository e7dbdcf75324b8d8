//go:build desktop && !bindings

package app

/*
#cgo CFLAGS: -x objective-c
#cgo LDFLAGS: -framework Cocoa
#import <Cocoa/Cocoa.h>

static int windowIsKey(void) { return [NSApp isActive] && [[NSApp mainWindow] isKeyWindow] ? 1 : 0; }
*/
import "C"

// windowIsKey says whether keys go to the app's window.
func windowIsKey() bool { return C.windowIsKey() != 0 }
