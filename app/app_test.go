package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestGeometry(t *testing.T) {
	for _, c := range []struct {
		in            Geometry
		width, height int
		known         bool
	}{
		{Geometry{}, firstWidth, firstHeight, false},
		{Geometry{Width: 900, Height: 700}, 900, 700, true},
		{Geometry{Width: 900, Height: 10}, firstWidth, firstHeight, true},
		{Geometry{Width: -5, Height: 700}, firstWidth, firstHeight, false},
	} {
		if w, h := c.in.size(); w != c.width || h != c.height || c.in.known() != c.known {
			t.Errorf("%+v: %dx%d, known %v", c.in, w, h, c.in.known())
		}
	}
}

// What the page reads of an error must stay JSON, whatever the error was.
func TestErrorForThePage(t *testing.T) {
	link := &Error{Code: "link.refused", Params: map[string]string{"link": `a"b`}, cause: errScheme}
	for _, c := range []struct {
		err  error
		code string
		link string
	}{
		{link, "link.refused", `a"b`},
		{fmt.Errorf("wrapped: %w", link), "link.refused", `a"b`},
		{fs.ErrNotExist, "shell.failed", ""},
	} {
		var got Error
		if err := json.Unmarshal([]byte(coded(c.err).page()), &got); err != nil {
			t.Fatal(err)
		}
		if got.Code != c.code || got.Params["link"] != c.link {
			t.Errorf("%v: the page reads %+v", c.err, got)
		}
	}
	if !errors.Is(coded(fs.ErrNotExist), fs.ErrNotExist) {
		t.Error("the cause is lost for the log")
	}
}

func TestDialogText(t *testing.T) {
	want := "100% of %s"
	if runtime.GOOS == "linux" {
		want = "100%% of %%s"
	}
	if got := dialogText("100% of %s"); got != want {
		t.Errorf("got %q", got)
	}
	for _, n := range []int{1, 2, 17} {
		if closeQuestion(n) == "" {
			t.Errorf("nothing is asked for %d", n)
		}
		if s := closeSheet("Deskhand", n); !s.fits() || len(s.text) == 0 || !strings.HasSuffix(s.buttons[closeStops].label, "quit") || s.buttons[closeHides].label == "" {
			t.Errorf(`closeSheet("Deskhand"): got s %+v, want s.fits(), some text, s.buttons[closeStops].label ending in "quit" and s.buttons[closeHides].label other than ""`, s)
		}
	}
}

func TestSpareGPU(t *testing.T) {
	const variable = "WEBKIT_DISABLE_DMABUF_RENDERER"
	present := func(want string) func(string) bool { return func(path string) bool { return path == want } }
	t.Setenv(variable, "0")
	spareGPU(present("/proc/driver/nvidia"))
	if got := os.Getenv(variable); got != "0" {
		t.Errorf("a person's choice became %q", got)
	}
	for driver, want := range map[string]string{"/proc/driver/nvidia": "1", "/sys/module/nvidia": "1", "/sys/module/i915": ""} {
		if err := os.Unsetenv(variable); err != nil {
			t.Fatal(err)
		}
		spareGPU(present(driver))
		if got := os.Getenv(variable); got != want {
			t.Errorf("with %s: %q, want %q", driver, got, want)
		}
	}
}
