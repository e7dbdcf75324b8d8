//go:build desktop && !bindings

package app

/*
#cgo CFLAGS: -x objective-c
#cgo LDFLAGS: -framework Cocoa
#import <Cocoa/Cocoa.h>
#import <objc/runtime.h>

static BOOL reopen(id delegate, SEL selector, NSApplication *app, BOOL visible) {
	(void)selector;
	(void)app;
	if (!visible) {
		[[delegate mainWindow] makeKeyAndOrderFront:nil];
	}
	return YES;
}

static int takeReopening(void) {
	char types[32];
	snprintf(types, sizeof types, "%s@:@%s", @encode(BOOL), @encode(BOOL));
	Class wails = objc_getClass("AppDelegate");
	return wails != Nil && class_addMethod(wails, @selector(applicationShouldHandleReopen:hasVisibleWindows:), (IMP)reopen, types) ? 1 : 0;
}

static void stopNow(void) {
	CFRunLoopRef loop = CFRunLoopGetMain();
	CFRunLoopPerformBlock(loop, kCFRunLoopCommonModes, ^{
		if ([NSApp modalWindow] != nil) {
			[NSApp stopModalWithCode:NSModalResponseAbort];
			stopNow();
		} else {
			[NSApp stop:nil];
		}
		[NSApp postEvent:[NSEvent otherEventWithType:NSEventTypeApplicationDefined location:NSZeroPoint modifierFlags:0 timestamp:0 windowNumber:0
		                                     context:nil subtype:0 data1:0 data2:0] atStart:YES];
	});
	CFRunLoopWakeUp(loop);
}
*/
import "C"

// macOS has never run this: no Mac was there.

// sizeHasTitle: Wails reports the size of a window with its title bar, but opens a window with a size without the title bar.
const sizeHasTitle = true

// takeReopening shows the window again when somebody opens the running app in the Dock or in Finder: the system then starts no second
// program and notifies the first, but Wails' delegate ignores that notification. Hiding the whole app instead, which the system undoes by
// itself, would also hide its alerts. takeReopening must be called before Wails makes the delegate.
func takeReopening() { C.takeReopening() }

// stopNow ends the app's loop. Wails only marks the loop as ended, from another thread: the loop then ends with the next event, which an
// unused window does not produce; and during an alert, the mark is on the alert's own loop, and the app goes on. The loop itself runs
// stopNow instead of the main queue, because the queue stands still during an alert that was opened from the queue.
func stopNow() { C.stopNow() }
