//go:build desktop && !bindings

package app

// #include <stdlib.h>
// #include "dialog_linux.h"
import "C"

import (
	"context"
	"runtime/cgo"
	"strconv"
	"strings"
	"unsafe"
)

// openNative returns the dialogs of GTK and the notifications of D-Bus.
func openNative(s *shell) native {
	n := &notifier{}
	return native{focus: watchFocus(), ask: askGTK, notify: n.notify, close: n.close}
}

// askGTK shows a sheet in a window of its own.
func askGTK(ctx context.Context, s sheet) (reply, error) {
	answered := make(chan reply, 1) // the dialog ends once, and need not wait for us
	id := C.uintptr_t(cgo.NewHandle(answered))
	texts := cTexts{}
	defer texts.free()
	d := C.deskhandDialogNew(id, texts.of(s.title), texts.of(s.heading), texts.of(s.about), truth(s.code))
	for _, l := range s.text {
		C.deskhandDialogLine(d, C.int(l.style), texts.of(l.text), truth(l.goes))
	}
	C.deskhandDialogChoices(d, truth(s.several), truth(s.own))
	for _, c := range s.choices {
		C.deskhandDialogChoice(d, texts.of(c.label), texts.of(c.about))
	}
	for _, b := range s.buttons {
		C.deskhandDialogButton(d, texts.of(b.label), truth(b.needs), truth(b.enter))
	}
	if s.plain != "" {
		C.deskhandDialogPlain(d, texts.of(s.plain))
	}
	C.deskhandDialogShow(d, guardMillis)
	select {
	case r := <-answered:
		return r, ctx.Err()
	case <-ctx.Done():
		C.deskhandDialogWithdraw(id) // a closed window needs no withdrawal
		return reply{}, ctx.Err()
	}
}

// presentQuestion brings forward the question before closing: the question's dialog is no child of the window, and may be behind the
// window.
func presentQuestion() { C.deskhandDialogPresent() }

// cTexts are texts in C, until they are freed together.
type cTexts []unsafe.Pointer

func (t *cTexts) of(text string) *C.char {
	c := C.CString(text)
	*t = append(*t, unsafe.Pointer(c))
	return c
}

func (t *cTexts) free() {
	for _, p := range *t {
		C.free(p)
	}
}

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

//export deskhandDialogDone
func deskhandDialogDone(id C.uintptr_t, pressed C.int, chosen, own *C.char) {
	h := cgo.Handle(id)
	answered, _ := h.Value().(chan reply)
	h.Delete()
	r := reply{button: int(pressed), own: C.GoString(own)}
	for field := range strings.FieldsSeq(C.GoString(chosen)) {
		if i, err := strconv.Atoi(field); err == nil {
			r.chosen = append(r.chosen, i)
		}
	}
	answered <- r
}
