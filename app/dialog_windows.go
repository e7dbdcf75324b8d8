//go:build desktop && !bindings

package app

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Task dialogs of Windows. The dialogs are cross-built and have never been seen: this system is not tested.
//
// A task dialog has buttons and a single-choice list, but no field and no multiple-choice list, and its text does not scroll. A request
// that needs more is only announced, and answered in the window.

// openNative returns the task dialogs of Windows, and the notifications of Wails.
func openNative(s *shell) native {
	stop := make(chan struct{})
	n, t := &toaster{shell: s}, &tasks{open: map[uintptr]*task{}}
	return native{
		focus: watchForeground(stop), ask: t.ask, notify: n.notify,
		close: func() {
			close(stop)
			n.close()
		},
	}
}

// mostTaskText is how much text a task dialog shows without growing over the screen.
const mostTaskText = 1500

var errNoTaskDialog = errors.New("this program runs without version 6 of the common controls")

// Of commctrl.h.
const (
	tdfAllowCancel    = 0x0008
	tdfNoDefaultRadio = 0x4000
	tdfCallbackTimer  = 0x0800
	tdfSizeToContent  = 0x01000000

	tdnCreated      = 0
	tdnButton       = 2
	tdnTimer        = 4
	tdnRadio        = 6
	tdmClickButton  = 0x0400 + 102
	tdmEnableButton = 0x0400 + 111

	idCancel    = 2
	firstButton = 100
	firstRadio  = 1000
	openButton  = 99
	laterButton = 98
)

// tasks holds the task dialogs on the screen. Windows callbacks cannot be freed, so all dialogs share one callback.
type tasks struct {
	mu       sync.Mutex // protects the fields below
	open     map[uintptr]*task
	last     uintptr
	callback uintptr
}

// add returns the callback of the task's dialog, and the number that identifies the task in the callback.
func (t *tasks) add(one *task) (callback, number uintptr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.callback == 0 {
		t.callback = windows.NewCallback(t.called)
	}
	t.last++
	t.open[t.last] = one
	return t.callback, t.last
}

func (t *tasks) called(window, what, word, _, number uintptr) uintptr {
	t.mu.Lock()
	one := t.open[number]
	t.mu.Unlock()
	if one == nil {
		return 0
	}
	return one.called(window, what, word)
}

// task is a task dialog that is shown.
type task struct {
	ctx    context.Context //nolint:containedctx // the context of the dialog's single call; Windows' callback gets no other argument
	sheet  sheet
	since  time.Time
	ready  bool
	chosen int // -1 = none
	pinned []any
}

// ask shows a sheet. The dialog has its own thread, with its own message loop.
func (t *tasks) ask(ctx context.Context, s sheet) (reply, error) {
	answered := make(chan reply, 1)
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		one := &task{ctx: ctx, sheet: reduced(s), chosen: -1}
		callback, number := t.add(one)
		r, err := one.show(callback, number)
		t.mu.Lock()
		delete(t.open, number)
		t.mu.Unlock()
		if err != nil {
			failed <- err
			return
		}
		answered <- r
	}()
	select {
	case r := <-answered:
		return r, ctx.Err()
	case err := <-failed:
		return reply{}, err
	}
}

// reduced reduces a sheet to the parts that a task dialog can show.
func reduced(s sheet) sheet {
	size := 0
	for _, l := range s.text {
		size += len(l.text) + 1
	}
	if size <= mostTaskText && !s.own && !s.several {
		return s
	}
	s.text = lines(plainLine, "There is more to this than a dialog of Windows shows. The window shows all of it.")
	s.choices, s.buttons = nil, nil
	return s
}

func (t *task) show(callback, number uintptr) (reply, error) {
	procedure := windows.NewLazySystemDLL("comctl32.dll").NewProc("TaskDialogIndirect")
	if procedure.Find() != nil {
		return reply{}, errNoTaskDialog
	}
	config := t.config(callback, number)
	var button, radio int32
	result, _, _ := procedure.Call(uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&button)), uintptr(unsafe.Pointer(&radio)), 0)
	runtime.KeepAlive(t)
	if result != 0 {
		return reply{}, fmt.Errorf("TaskDialogIndirect: %#x", result)
	}
	r := reply{button: pressedLater}
	switch {
	case button == openButton:
		r.button = pressedOpen
	case button >= firstButton && int(button) < firstButton+len(t.sheet.buttons):
		r.button = int(button) - firstButton
	}
	if radio >= firstRadio {
		r.chosen = []int{int(radio) - firstRadio}
	}
	return r, nil
}

// config is TASKDIALOGCONFIG, which is packed: no field is aligned.
func (t *task) config(callback, number uintptr) []byte {
	s := t.sheet
	var content strings.Builder
	for _, part := range append([]line{{text: s.about}, {}}, s.text...) {
		content.WriteString(part.text + "\n")
	}
	var buttons, radios []byte
	for i, b := range s.buttons {
		buttons = t.entry(buttons, firstButton+i, b.label)
	}
	count := len(s.buttons)
	if s.plain == "" {
		buttons = t.entry(buttons, openButton, "Open in Deskhand")
		buttons = t.entry(buttons, laterButton, "Later")
		count += 2
	} else {
		buttons = t.entry(buttons, laterButton, s.plain)
		count++
	}
	for i, c := range s.choices {
		radios = t.entry(radios, firstRadio+i, strings.TrimSpace(c.label+"\n"+c.about))
	}
	flags := tdfAllowCancel | tdfCallbackTimer | tdfNoDefaultRadio | tdfSizeToContent
	p := packed{}
	p.word(0) // the size, set below
	p.pointer(0)
	p.pointer(0)
	p.word(uint32(flags))
	p.word(0) // no common buttons
	p.pointer(t.text(s.title))
	p.pointer(0) // no icon
	p.pointer(t.text(s.heading))
	p.pointer(t.text(strings.TrimSpace(content.String())))
	p.word(uint32(count))
	p.pointer(t.keep(buttons))
	p.word(laterButton) // the default button: answers nothing
	p.word(uint32(len(s.choices)))
	p.pointer(t.keep(radios))
	p.word(0)
	for range 6 { // verification, expanded information, its two labels, the footer's icon, the footer
		p.pointer(0)
	}
	p.pointer(callback)
	p.pointer(number)
	p.word(0)
	binary.LittleEndian.PutUint32(p, uint32(len(p)))
	return p
}

// packed is a structure without gaps, in the order of this machine, which is little-endian on every Windows.
type packed []byte

func (p *packed) word(v uint32) { *p = binary.LittleEndian.AppendUint32(*p, v) }

func (p *packed) pointer(v uintptr) {
	if unsafe.Sizeof(v) == 4 {
		p.word(uint32(v))
		return
	}
	*p = binary.LittleEndian.AppendUint64(*p, uint64(v))
}

// entry adds a TASKDIALOG_BUTTON. Ampersands are doubled, because a single ampersand marks an access key.
func (t *task) entry(to []byte, id int, label string) []byte {
	p := packed(to)
	p.word(uint32(id))
	p.pointer(t.text(strings.ReplaceAll(label, "&", "&&")))
	return p
}

// text returns a text in UTF-16 that lives as long as the task. Texts of sheets are visible, so they contain no NUL.
func (t *task) text(text string) uintptr {
	wide, err := windows.UTF16FromString(text)
	if err != nil {
		wide = []uint16{0}
	}
	t.pinned = append(t.pinned, wide)
	return uintptr(unsafe.Pointer(&wide[0]))
}

func (t *task) keep(data []byte) uintptr {
	if len(data) == 0 {
		return 0
	}
	data = slices.Clip(data)
	t.pinned = append(t.pinned, data)
	return uintptr(unsafe.Pointer(&data[0]))
}

// called is the dialog's callback, on the dialog's own thread. called enables the answering buttons after the guard, and closes the dialog
// once ctx is done: the timer fires every 200 ms.
func (t *task) called(window, what, word uintptr) uintptr {
	send := windows.NewLazySystemDLL("user32.dll").NewProc("SendMessageW")
	const isFalse = 1 // S_FALSE: the dialog stays
	switch what {
	case tdnCreated:
		t.since = time.Now()
		t.enable(window, send)
	case tdnRadio:
		t.chosen = int(word) - firstRadio
		t.enable(window, send)
	case tdnTimer:
		if t.ctx.Err() != nil {
			_, _, _ = send.Call(window, tdmClickButton, idCancel, 0)
			return 0
		}
		if !t.ready && time.Since(t.since) >= guardMillis*time.Millisecond {
			t.ready = true
			t.enable(window, send)
		}
	case tdnButton:
		if t.ctx.Err() == nil && !t.ready {
			return isFalse
		}
	}
	return 0
}

func (t *task) enable(window uintptr, send *windows.LazyProc) {
	for i, b := range t.sheet.buttons {
		on := uintptr(0)
		if t.ready && (!b.needs || t.chosen >= 0) {
			on = 1
		}
		_, _, _ = send.Call(window, tdmEnableButton, uintptr(firstButton+i), on)
	}
}

// appClass is the class that Wails gives the window.
const appClass = "wailsWindow"

// watchForeground tells whether the window in front is ours, and no dialog of ours: Wails tells of no focus.
func watchForeground(stop <-chan struct{}) <-chan bool {
	focus := make(chan bool)
	user := windows.NewLazySystemDLL("user32.dll")
	foreground, owner, class := user.NewProc("GetForegroundWindow"), user.NewProc("GetWindowThreadProcessId"), user.NewProc("GetClassNameW")
	go func() {
		look := time.NewTicker(500 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-stop:
				return
			case <-look.C:
			}
			var pid uint32
			window, _, _ := foreground.Call()
			_, _, _ = owner.Call(window, uintptr(unsafe.Pointer(&pid)))
			var name [64]uint16
			_, _, _ = class.Call(window, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)))
			select {
			case focus <- pid == windows.GetCurrentProcessId() && windows.UTF16ToString(name[:]) == appClass:
			case <-stop:
				return
			}
		}
	}()
	return focus
}
