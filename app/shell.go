//go:build desktop

package app

import (
	"context"
	_ "embed" // the icon
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/options/linux"
	"github.com/wailsapp/wails/v2/pkg/options/windows"
	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// Available says whether this build can open a window.
const Available = true

// Run shows the window and returns once the window is closed: by a person, by SIGTERM, SIGINT or SIGHUP, or because ctx is done. Run must
// be called from main's goroutine, as macOS and GTK need the process's first thread. While Run runs, it handles these signals; a second
// signal ends the process at once.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Title == "" {
		cfg.Title = "Deskhand"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Seal == nil {
		cfg.Seal = func() {}
	}
	if cfg.Programs == nil {
		cfg.Programs = func(context.Context) (func(string) string, func(string) (string, error)) {
			return os.Getenv, exec.LookPath
		}
	}
	if cfg.Editor == nil {
		cfg.Editor = func(string, string) []string { return nil }
	}
	if err := openDisplay(); err != nil {
		return err
	}
	takeReopening()
	s := newShell(cfg)
	closed := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, closed) })
	watching.Go(func() { s.attend(ctx, closed) })
	err := wails.Run(s.options())
	close(closed)
	watching.Wait()
	s.forgetCopies()
	return err
}

// options returns the window's options for Wails.
func (s *shell) options() *options.App {
	width, height := s.cfg.Geometry.size()
	state := options.Normal
	if s.cfg.Geometry.Maximised {
		state = options.Maximised
	}
	return &options.App{
		Title: s.cfg.Title, Width: width, Height: height, WindowStartState: state,
		MinWidth: minWidth, MinHeight: minHeight,
		// Without a maximum Wails uses the size of the screen on which the window opens, and the window cannot fill a larger second screen.
		MaxWidth: maxSide, MaxHeight: maxSide,
		BackgroundColour: background(prefersDark()), // until the page has painted; white would flash
		// The page receives the paths of dropped files (frontend/src/shell/drops.ts); DisableWebViewDrop would keep every drop from the
		// page.
		DragAndDrop:    &options.DragAndDrop{EnableFileDrop: true},
		AssetServer:    &assetserver.Options{Assets: s.cfg.Assets, Middleware: mount(s.cfg.Handler, s.cfg.Seal, s.cfg.Logger)},
		Bind:           s.bound(),
		ErrorFormatter: formatError,
		Logger:         wailsLog{s.cfg.Logger},
		OnStartup:      s.started,
		OnDomReady:     s.loaded,
		OnBeforeClose:  s.end,
		// Copy and paste in a selection or a field; Wails' page script hides the menu everywhere else.
		EnableDefaultContextMenu: true,
		Windows:                  &windows.Options{Theme: windows.SystemDefault},
		Linux: &linux.Options{
			ProgramName: programName,
			Icon:        icon,
			// Explicit, because the zero value of this struct means Always, which leaves windows blank on some drivers.
			WebviewGpuPolicy: linux.WebviewGpuPolicyNever,
		},
	}
}

const maxSide = 1 << 14

//go:embed icon.png
var icon []byte // frontend/public/icon.svg at 256 pixels

// background is the page's background colour in frontend/src/styles.
func background(dark bool) *options.RGBA {
	if dark {
		return options.NewRGB(0x0E, 0x0F, 0x11)
	}
	return options.NewRGB(0xFF, 0xFF, 0xFF)
}

// shell is a run of the window.
type shell struct {
	cfg Config

	ctx  context.Context // Wails' own context, which Wails' calls need; valid once open is closed
	open chan struct{}   // closed once the window exists
	page chan struct{}   // closed once the page has loaded
	once sync.Once       // a page that is loaded again

	copying sync.Mutex
	copied  string // directory of the copies of opened attachments, once there are any

	// ask shows a dialog of ours until the window is closed, once there are any.
	ask atomic.Pointer[func(sheet) (reply, error)]

	dialog   sync.Mutex  // held while a native dialog is shown: Wails answers all dialogs over one channel
	closing  closing     // the question whether to stop
	quitting atomic.Bool // the window closes and nobody is asked any more
	hidden   atomic.Bool // the window is hidden, and its place is saved: the desktop reports wrong places for hidden windows
}

func newShell(cfg Config) *shell {
	return &shell{cfg: cfg, open: make(chan struct{}), page: make(chan struct{})}
}

// wails returns the context that Wails' calls need, and waits for it: with any other context Wails' calls end the process.
func (s *shell) wails() context.Context {
	<-s.open
	return s.ctx
}

func (s *shell) started(ctx context.Context) {
	calm()
	if sizeHasTitle && !s.cfg.Geometry.Maximised { // otherwise the window grows by its title bar at each start
		width, height := s.cfg.Geometry.size()
		runtime.WindowSetSize(ctx, width, height)
	}
	s.ctx = ctx
	close(s.open)
}

func (s *shell) loaded(ctx context.Context) {
	s.once.Do(func() {
		guardPage(func(wait int) { s.cfg.Logger.Error("the page's process died; it is loaded anew", "seconds", wait) })
		// Wails sets the minimum size before the window is on a screen, when GTK ignores limits.
		runtime.WindowSetMinSize(ctx, minWidth, minHeight)
		close(s.page)
	})
}

// pageTimeout is the time that a page may take to load before the window is closed without waiting for the page.
const pageTimeout = 5 * time.Second

// watch handles events from outside the window until the window is closed.
func (s *shell) watch(ctx context.Context, closed <-chan struct{}) {
	select {
	case <-s.open:
	case <-closed:
		return
	}
	if g := s.cfg.Geometry; g.known() && !g.Maximised {
		moveWindow(g.X, g.Y)
	}
	signals := takeSignals()
	defer signal.Stop(signals)
	for {
		select {
		case <-closed:
			return
		case <-s.cfg.Activate:
			s.show()
		case sig := <-signals:
			signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // the second signal gets the default action; a closed pipe stays an error of the writer
			s.cfg.Logger.Info("closing the window", "signal", sig.String())
			s.quit(closed)
			return
		case <-ctx.Done():
			s.quit(closed)
			return
		}
	}
}

// attend shows waiting requests beside the window, until the window is closed.
func (s *shell) attend(ctx context.Context, closed <-chan struct{}) {
	select {
	case <-s.open:
	case <-closed:
		return
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		<-closed
		stop()
	}()
	n := openNative(s)
	ask := func(question sheet) (reply, error) { return n.ask(ctx, question) }
	s.ask.Store(&ask)
	newAsking(api{s.cfg.Handler}, n, s.cfg.Logger, s.showRequest).run(ctx)
	n.close()
}

// eventShow asks the page to show a request, or the inbox. This event, with a few ids, is the only event that the app sends to the page.
const eventShow = "deskhand:show"

// showRequest brings the window forward, with a request or the inbox.
func (s *shell) showRequest(request, session string) {
	s.show()
	runtime.EventsEmit(s.wails(), eventShow, request, session)
}

// takeSignals removes Wails' handler of the signals. Wails would close the window as if a person had: it would ask whether to stop, and
// nobody is there to answer.
func takeSignals() chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return signals
}

// quit closes the window without asking.
func (s *shell) quit(closed <-chan struct{}) {
	// The toolkit ignores a quit before its loop runs.
	timer := time.NewTimer(pageTimeout)
	defer timer.Stop()
	select {
	case <-s.page:
	case <-closed:
		return
	case <-timer.C:
	}
	s.quitting.Store(true)
	dismissDialogs() // an open dialog keeps the loop alive
	s.remember()
	runtime.Quit(s.wails())
}

// copies returns the directory of the copies of opened attachments. The directory is deleted with the window: the originals are kept
// elsewhere.
func (s *shell) copies() (dir string, err error) {
	s.copying.Lock()
	defer s.copying.Unlock()
	if s.copied == "" {
		if s.copied, err = os.MkdirTemp("", "deskhand-opened-"); err != nil {
			return "", notSaved(os.TempDir(), err)
		}
	}
	return s.copied, nil
}

func (s *shell) forgetCopies() {
	s.copying.Lock()
	defer s.copying.Unlock()
	if s.copied == "" {
		return
	}
	if err := os.RemoveAll(s.copied); err != nil {
		s.cfg.Logger.Warn("copies of opened files are left", "dir", s.copied, "err", err)
	}
}

// end is beforeClose, and the end of the app once that lets the window close.
func (s *shell) end(ctx context.Context) (stay bool) {
	if s.beforeClose(ctx) {
		return true
	}
	s.quitting.Store(true)
	stopNow()
	return false
}

func (s *shell) show() {
	s.hidden.Store(false)
	runtime.WindowShow(s.wails())
	runtime.WindowUnminimise(s.wails()) // on Linux this call also presents the window and gives it the focus
}

// beforeClose reports whether the window stays open. Wails calls beforeClose once per click.
func (s *shell) beforeClose(context.Context) (stay bool) {
	if s.quitting.Load() {
		return false // quit has already asked
	}
	// Wails for Windows asks in the window's own thread, and not in a goroutine. That must not wait for a person: no message would be handled
	// meanwhile, and Windows puts a dead picture in the window's place.
	const inWindow = goruntime.GOOS == "windows"
	return s.closing.stays(inWindow, s.mayClose, func() {
		s.quitting.Store(true)
		runtime.Quit(s.wails())
	}, presentQuestion)
}

func (s *shell) mayClose() bool {
	if s.cfg.RunningTurns != nil {
		if n := s.cfg.RunningTurns(); n > 0 && !s.mayQuit(n) {
			return false
		}
	}
	s.remember()
	return true
}

// mayQuit asks a person who closes the window while agents work. The person may hide the window instead: the program goes on, and a second
// start shows the window.
func (s *shell) mayQuit(turns int) bool {
	ask := s.ask.Load()
	if ask == nil {
		return s.stopAgents(turns)
	}
	answer, err := (*ask)(closeSheet(s.cfg.Title, turns))
	switch {
	case s.quitting.Load(), errors.Is(err, context.Canceled): // the window closes by itself
		return false
	case err != nil: // there is none here
		s.cfg.Logger.Info("the question before closing is the system's", "why", err)
		return s.stopAgents(turns)
	case answer.button == closeHides:
		s.remember()
		s.hidden.Store(true)
		runtime.WindowHide(s.wails())
		return false
	}
	return answer.button == closeStops
}

// stopAgents asks whether the running agents may be stopped, on systems without a dialog of ours.
func (s *shell) stopAgents(turns int) bool {
	s.dialog.Lock()
	defer s.dialog.Unlock()
	answer, err := runtime.MessageDialog(s.wails(), runtime.MessageDialogOptions{
		Type:    runtime.QuestionDialog,
		Title:   s.cfg.Title,
		Message: dialogText(closeQuestion(turns)),
	})
	if err != nil {
		s.cfg.Logger.Error("the question before closing failed", "err", err)
		return true // nobody could answer, and a window that cannot be closed is worse
	}
	return answer == "Yes"
}

// remember saves the place of the window. A maximised window keeps its previous size, for the return from maximised.
func (s *shell) remember() {
	if s.cfg.SaveGeometry == nil || s.hidden.Load() {
		return
	}
	g := s.cfg.Geometry
	g.Maximised = runtime.WindowIsMaximised(s.wails())
	if !g.Maximised {
		g.Width, g.Height = runtime.WindowGetSize(s.wails())
		g.X, g.Y = runtime.WindowGetPosition(s.wails())
	}
	if !g.known() {
		g.Width, g.Height = firstWidth, firstHeight
	}
	if err := s.cfg.SaveGeometry(g); err != nil {
		s.cfg.Logger.Error("the window's place was not saved", "err", err)
	}
}

// recovered makes a panic of a bound method an error: Wails would log the panic and leave the page waiting for ever.
func (s *shell) recovered(err *error) {
	if p := recover(); p != nil {
		s.cfg.Logger.Error("a bound method panicked", "panic", p, "stack", string(debug.Stack()))
		*err = &Error{Code: "shell.failed"}
	}
}

// formatError is the message of the Error that the page's promise is rejected with: JSON text, because Wails makes a string of
// anything else.
func formatError(err error) any { return coded(err).page() }

// wailsLog passes on the log messages of Wails.
type wailsLog struct{ to *slog.Logger }

func (l wailsLog) Print(m string)   { l.to.Info("wails", "text", strings.TrimSpace(m)) }
func (l wailsLog) Trace(m string)   { l.to.Debug("wails", "text", strings.TrimSpace(m)) }
func (l wailsLog) Debug(m string)   { l.to.Debug("wails", "text", strings.TrimSpace(m)) }
func (l wailsLog) Info(m string)    { l.to.Info("wails", "text", strings.TrimSpace(m)) }
func (l wailsLog) Warning(m string) { l.to.Warn("wails", "text", strings.TrimSpace(m)) }
func (l wailsLog) Error(m string)   { l.to.Error("wails", "text", strings.TrimSpace(m)) }
func (l wailsLog) Fatal(m string) {
	l.to.Error("wails", "text", strings.TrimSpace(m))
	os.Exit(1)
}
