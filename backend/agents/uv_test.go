package agents_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/agents"
)

// standIn replaces uv, which the test machines lack: the script accepts exactly the arguments and variables of "uv tool install" in uv's
// manual, and does the same with Python's venv and pip: an environment below UV_TOOL_DIR, whose scripts contain its path, from a real
// index, and links to the package's programs in UV_TOOL_BIN_DIR.
const standIn = `
import configparser, glob, json, os, subprocess, sys
argv = sys.argv[1:]
with open(os.environ["HOME"] + "/uv-calls", "a") as f:
    f.write(json.dumps({"argv": argv, "tools": os.environ.get("UV_TOOL_DIR"), "bin": os.environ.get("UV_TOOL_BIN_DIR")}) + "\n")
def fail(text, code=2):
    print(text, file=sys.stderr)
    sys.exit(code)
if argv[:2] != ["tool", "install"]:
    fail("error: unrecognized subcommand")
flags, specs = argv[2:argv.index("--")], argv[argv.index("--") + 1:]
if flags != ["--no-progress", "--color", "never", "--no-build"] or len(specs) != 1:
    fail("error: unexpected argument")
name, version = specs[0].split("==")
tools, links = os.environ["UV_TOOL_DIR"], os.environ["UV_TOOL_BIN_DIR"]
env = os.path.join(tools, name)
subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True, stdout=sys.stderr)
print("Resolved 1 package in 1ms", file=sys.stderr, flush=True)
pip = subprocess.run([sys.executable, "-m", "pip", "--python", env + "/bin/python", "--no-cache-dir", "install", "--no-input", "--disable-pip-version-check",
    "--only-binary", ":all:", "--index-url", os.environ["UV_DEFAULT_INDEX"], specs[0]], capture_output=True, text=True)
print(pip.stdout + pip.stderr, file=sys.stderr, flush=True)
if "No matching distribution" in pip.stderr:
    fail("  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of " + specs[0] + ", we can conclude that your requirements are unsatisfiable.", 1)
if pip.returncode:
    fail("error: Failed to download ` + "`" + `" + specs[0] + "` + "`" + `", 2)
os.makedirs(links, exist_ok=True)
info = glob.glob(env + "/lib/python*/site-packages/" + name.replace("-", "_") + "-*.dist-info")[0]
points = configparser.ConfigParser()
points.read(info + "/entry_points.txt")
for program in points["console_scripts"] if points.has_section("console_scripts") else []:
    os.symlink(env + "/bin/" + program, links + "/" + program)
print("Installed 1 executable", file=sys.stderr)
`

const pythonAgent = `
import json, sys
def main():
    for line in sys.stdin:
        q = json.loads(line)
        if "method" not in q: continue
        if q["method"] == "initialize": r = {"result": {"protocolVersion": 1, "agentInfo": {"name": "snake", "version": "VERSION"}}}
        elif q["method"] == "session/new": r = {"result": {"sessionId": "s"}}
        else: r = {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": q["id"], **r}), flush=True)
`

// wheel returns a Python package with a program.
func wheel(t *testing.T, name, version, program, text string) []byte {
	t.Helper()
	module := strings.ReplaceAll(name, "-", "_")
	info := module + "-" + version + ".dist-info/"
	files := []item{
		{name: module + "/__init__.py", text: text},
		{name: info + "METADATA", text: fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)},
		{name: info + "WHEEL", text: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{name: info + "entry_points.txt", text: fmt.Sprintf("[console_scripts]\n%s = %s:main\n", program, module)},
	}
	record := ""
	for _, f := range files {
		record += f.name + ",,\n"
	}
	files = append(files, item{name: info + "RECORD", text: record + info + "RECORD,,\n"})
	var buf bytes.Buffer
	archive := zip.NewWriter(&buf)
	for _, f := range files {
		w, err := archive.Create(f.name)
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// snakes is a shop with Python, the stand-in for uv, an index on loopback, and a Python agent in agents.json.
type snakes struct {
	*installFixture

	mu     sync.Mutex        // protects the fields below
	wheels map[string][]byte // by file name
	sums   map[string]string // reported instead of the right checksums
}

func openSnakes(t *testing.T) *snakes {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import pip, sys, venv; print(sys.executable)").Output()
	if err != nil {
		t.Skip("Python with pip and venv is needed: ", err)
	}
	s := &snakes{wheels: map[string][]byte{}, sums: map[string]string{}}
	index := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(index.Close)
	s.installFixture = openInstallFixture(t, func(c *agents.Config) {
		c.File = filepath.Join(t.TempDir(), "agents.json")
		c.Environ = append(c.Environ, "UV_DEFAULT_INDEX="+index.URL+"/simple", "PIP_CONFIG_FILE=/dev/null")
	})
	program := filepath.Join(s.home, "uv.py")
	script := "#!/bin/sh\nexec '" + strings.TrimSpace(string(out)) + "' '" + program + "' \"$@\"\n"
	for file, text := range map[string]string{program: standIn, filepath.Join(s.bin, "uv"): script} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// serve serves the index of PEP 503: a page of links for a package, and files.
func (s *snakes) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		_, _ = w.Write(s.wheels[name])
		return
	}
	asked := strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple/"), "/")
	w.Header().Set("Content-Type", "text/html")
	for name, data := range s.wheels {
		sum := sumOf(data)
		if other := s.sums[name]; other != "" {
			sum = other
		}
		if strings.HasPrefix(strings.ReplaceAll(name, "_", "-"), asked+"-") {
			fmt.Fprintf(w, "<a href=\"/files/%s#sha256=%s\">%s</a>\n", name, sum, name)
		}
	}
}

func (s *snakes) publish(version, program, text string) {
	data := wheel(s.t, "snake-agent", version, program, strings.ReplaceAll(text, "VERSION", version))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wheels[wheelName(version)] = data
}

// sumIs sets the checksum that the index reports.
func (s *snakes) sumIs(version, sum string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[wheelName(version)] = sum
}

func wheelName(version string) string { return "snake_agent-" + version + "-py3-none-any.whl" }

func (s *snakes) lists(spec string) {
	s.t.Helper()
	data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
		"id": "snake", "distribution": map[string]any{"uvx": map[string]any{"package": spec, "args": []string{"-x"}}},
	}}})
	if err == nil {
		err = os.WriteFile(s.cfg.File, data, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestPythonAgent(t *testing.T) {
	s := openSnakes(t)
	s.publish("1.0", "snake-agent", pythonAgent)
	s.publish("1.1rc1", "snake", pythonAgent) // another name, but the only program
	s.lists("snake-agent==1.0")
	if a := get(t, s.Catalogue, "snake"); a.State != agents.NotFound || a.Distribution != "uvx" || a.Package != "snake-agent" || a.Pinned != "1.0" || a.Name != "snake" {
		t.Errorf("snake: got %+v, want not_found, uvx, pinned 1.0", a)
	}
	var steps []string
	grew, said := false, false
	if _, err := s.Installer().Install(t.Context(), "snake", agents.InstallRequest{}, func(p agents.Progress) {
		if len(steps) == 0 || steps[len(steps)-1] != p.Step {
			steps = append(steps, p.Step)
		}
		grew, said = grew || p.Bytes > 0, said || strings.Contains(p.Log, "Resolved 1 package")
	}); err != nil {
		failed, _ := errors.AsType[*agents.InstallError](err)
		t.Fatalf("Install(snake): got %v, stderr %s, want no error", err, failed.Stderr)
	}
	if !slices.Equal(steps, []string{"resolve", "download", "verify", "switch"}) || !grew || !said {
		t.Errorf("installation: got steps %v, bytes %v, lines of uv %v; want all of them", steps, grew, said)
	}
	home := filepath.Join(s.cfg.Dir, "snake", "1.0")
	calls, err := os.ReadFile(filepath.Join(s.home, "uv-calls"))
	want := fmt.Sprintf(`{"argv": ["tool", "install", "--no-progress", "--color", "never", "--no-build", "--", "snake-agent==1.0"], "tools": %q, "bin": %q}`+"\n", home+"/tools", home+"/bin")
	if err != nil || string(calls) != want {
		t.Errorf("%s, want %s (%v)", calls, want, err)
	}
	cmd, err := s.Command(t.Context(), "snake", "/work")
	if err != nil || cmd.Path != filepath.Join(home, "bin", "snake-agent") || !slices.Equal(cmd.Args, []string{"-x"}) {
		t.Errorf("Command(snake): got %+v, %v, want bin/snake-agent -x", cmd, err)
	}
	if r, err := s.Test(t.Context(), "snake"); err != nil || !r.Healthy() || r.AgentInfo.Version != "1.0" {
		t.Errorf("Test(snake): got %+v, %v, want healthy in 1.0", r, err)
	}
	s.install("snake", agents.InstallRequest{AgentProcessVersion: "1.1rc1"})
	if a := get(t, s.Catalogue, "snake"); a.Version != "1.1rc1" || a.Previous != "1.0" || a.Path != filepath.Join(s.cfg.Dir, "snake", "1.1rc1", "bin", "snake") {
		t.Errorf("snake: got %+v, want 1.1rc1, before 1.0", a)
	}
	if err := s.Installer().Rollback("snake"); err != nil || get(t, s.Catalogue, "snake").Version != "1.0" {
		t.Error(err)
	}
	if r, err := s.Test(t.Context(), "snake"); err != nil || !r.Healthy() {
		t.Errorf("Test after Rollback: got %+v, %v; want it healthy", r, err)
	}
	s.install("snake", agents.InstallRequest{Reinstall: true, AgentProcessVersion: "1.0"})
	s.mustBeOnly("snake", "1.0-2", "1.1rc1")
	if err := s.Installer().Uninstall("snake"); err != nil {
		t.Error(err)
	}
	s.mustBeOnly("snake")
}

func TestPythonAgentThatFails(t *testing.T) {
	s := openSnakes(t)
	s.publish("1.0", "snake-agent", pythonAgent)
	s.lists("snake-agent==1.0")
	s.install("snake", agents.InstallRequest{})
	s.publish("1.1", "snake-agent", "def main(): raise SystemExit('no licence found')")
	s.publish("1.2", "snake-agent", pythonAgent)
	s.sumIs("1.2", strings.Repeat("0", 64))
	for version, want := range map[string]struct{ step, err, stderr string }{
		"1.1": {"verify", "with code 1", "no licence found"},
		"1.2": {"download", "uv failed: Failed to download `snake-agent==1.2`", "HASHES"},
		"9.9": {"download", "uv failed: No solution found when resolving dependencies: Because there is no version of snake-agent==9.9", ""},
	} {
		t.Run(version, func(t *testing.T) {
			_, err := s.Installer().Install(t.Context(), "snake", agents.InstallRequest{AgentProcessVersion: version}, nil)
			var failed *agents.InstallError
			if !errors.As(err, &failed) || failed.Step != want.step || !strings.Contains(err.Error(), want.err) || !strings.Contains(failed.Stderr, want.stderr) {
				t.Errorf("Install(snake %s): got %v\n%+v, want step %s, error %q, stderr %q", version, err, failed, want.step, want.err, want.stderr)
			}
			s.mustBeOnly("snake", "1.0")
			if a := get(t, s.Catalogue, "snake"); a.State != agents.Ready || a.Version != "1.0" {
				t.Errorf("snake: got %+v, want ready in 1.0", a)
			}
		})
	}
	for _, v := range []string{"latest", "1.*", ">=1", "1.0 --index-url=x", "1!1.0", "../1", "1.0+local"} {
		if _, err := s.Installer().Install(t.Context(), "snake", agents.InstallRequest{AgentProcessVersion: v}, nil); !errors.Is(err, agents.ErrVersion) {
			t.Errorf("Install(snake %s): got %v, want %v", v, err, agents.ErrVersion)
		}
	}
	if err := os.Remove(filepath.Join(s.bin, "uv")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Installer().Install(t.Context(), "snake", agents.InstallRequest{AgentProcessVersion: "1.2"}, nil)
	if !errors.Is(err, agents.ErrInstall) || !strings.Contains(err.Error(), "uv is not on PATH: install uv") {
		t.Errorf("Install without uv: got %v, want ErrInstall and uv named", err)
	}
	if r, err := s.Test(t.Context(), "snake"); err != nil || !r.Healthy() {
		t.Errorf("Test without uv: got %+v, %v; want it healthy", r, err)
	}
}

// TestKilledPythonInstallationIsSweptAway: the directory of a killed installation looks like a version, but no record names the directory.
func TestKilledPythonInstallationIsSweptAway(t *testing.T) {
	s := openSnakes(t)
	s.publish("1.0", "snake-agent", pythonAgent)
	s.lists("snake-agent==1.0")
	if err := os.MkdirAll(filepath.Join(s.cfg.Dir, "snake", "1.0", "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	if a := get(t, s.Catalogue, "snake"); a.State != agents.NotFound {
		t.Errorf("half an installation: got %+v, want it not found", a)
	}
	s.install("snake", agents.InstallRequest{})
	s.mustBeOnly("snake", "1.0")
}
