package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// part divides the system's watches, which a person's editors share: a Watch takes at most this fraction.
const part = 4

// Watch watches directories of a disk. Several goroutines may use a Watch.
type Watch struct {
	mu   sync.Mutex // protects the fields below
	fd   int        // -1 = closed
	dirs map[int32]string
	most int
}

// New makes a Watch without a directory.
func New() (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return nil, ErrFull
	}
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return &Watch{fd: fd, dirs: map[int32]string{}, most: allowed() / part}, nil
}

// allowed is the system's limit of watched directories per user.
func allowed() int {
	const least = 8192
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil {
		return n
	}
	return least
}

const mask = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// Add watches a directory without its subdirectories. Touched reports changes there below name, or without a prefix when name is empty.
func (w *Watch) Add(dir, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return os.ErrClosed
	}
	if len(w.dirs) >= w.most {
		return ErrFull
	}
	wd, err := unix.InotifyAddWatch(w.fd, dir, mask)
	if errors.Is(err, unix.ENOSPC) {
		return ErrFull
	}
	if err != nil {
		return &os.PathError{Op: "inotify_add_watch", Path: dir, Err: err}
	}
	if name != "" {
		name += "/"
	}
	w.dirs[int32(wd)] = name //nolint:gosec // the system's numbers have 32 bits
	return nil
}

// Touched returns the changes since the previous call.
func (w *Watch) Touched() (Touched, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return Touched{}, os.ErrClosed
	}
	var t Touched
	seen := map[string]bool{}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return t, nil
		case err != nil:
			return t, os.NewSyscallError("read", err)
		case n <= 0:
			return t, nil
		}
		w.read(buf[:n], &t, seen)
	}
}

// read decodes events. An event is a header of 16 bytes and a name padded with zeros.
func (w *Watch) read(buf []byte, t *Touched, seen map[string]bool) {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf)) //nolint:gosec // the sign is the system's
		what, length := binary.NativeEndian.Uint32(buf[4:]), int(binary.NativeEndian.Uint32(buf[12:]))
		end := min(unix.SizeofInotifyEvent+length, len(buf))
		name, _, _ := bytes.Cut(buf[unix.SizeofInotifyEvent:end], []byte{0})
		buf = buf[end:]
		w.event(wd, what, string(name), t, seen)
	}
}

func (w *Watch) event(wd int32, what uint32, name string, t *Touched, seen map[string]bool) {
	const folders = unix.IN_CREATE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	dir, known := w.dirs[wd]
	self := what&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0
	switch {
	case what&(unix.IN_Q_OVERFLOW|unix.IN_UNMOUNT) != 0, self && dir == "" && known, what&unix.IN_ISDIR != 0 && what&folders != 0:
		t.Lost = true
	case what&unix.IN_IGNORED != 0:
		delete(w.dirs, wd)
	case self, !known, name == "": // the directory around it tells
	case !seen[dir+name]:
		seen[dir+name] = true
		t.Paths = append(t.Paths, dir+name)
	}
}

// Close ends the watch.
func (w *Watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd < 0 {
		return nil
	}
	fd := w.fd
	w.fd = -1
	return os.NewSyscallError("close", unix.Close(fd))
}
