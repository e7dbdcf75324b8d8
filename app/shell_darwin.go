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

// sizeHasTitle says that the size which Wails tells of a window has its title bar in it, and the one that it opens a window with has not.
const sizeHasTitle = true

// takeReopening has the window come back when somebody opens the app that runs already, in the Dock or in Finder: the system starts no second
// program then and tells the first one, to which Wails' delegate does not listen. To hide the whole app instead, which the system undoes by
// itself, would hide its alerts too. It is called before Wails makes the delegate.
func takeReopening() { C.takeReopening() }

// stopNow ends the app's loop. Wails only marks it as ended, from another thread: it ends with the next event then, which nobody makes in a
// window that nobody uses; and in an alert, what is marked is the alert's own loop, and the app goes on. It is done by the loop itself and
// not by the main queue, which stands still for as long as an alert that came by it.
func stopNow() { C.stopNow() }
