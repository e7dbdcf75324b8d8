package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/proxy"
)

// The benchmarks run three processes, as in life: the client (this one), the server and the agent. The same agent is measured over a
// bare pipe beside it. Run them with
//
//	go test -run '^$' -bench . -benchtime 2s ./backend/httpapi

const roleVariable = "HTTPAPI_TEST_ROLE"

// benchAgent answers requests, and floods on demand: "flood:N" writes N messages of 200 bytes through a buffer, "drip:N" one write
// for each.
func benchAgent() {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		e, err := acp.Peek(line)
		if err != nil {
			os.Exit(9)
		}
		method, arg, _ := strings.Cut(e.Method(), ":")
		count, _ := strconv.Atoi(arg)
		for n := range count {
			writeTick(out, n)
			if method == "drip" {
				_ = out.Flush()
			}
		}
		if e.Kind == acp.Request {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"ok":true}}`+"\n", e.ID)
		}
		_ = out.Flush()
	}
}

// writeTick writes a message of 200 bytes.
func writeTick(out *bufio.Writer, n int) {
	const head, tail = `{"jsonrpc":"2.0","method":"session/update","params":{"n":`, `"}}` + "\n"
	var number [20]byte
	digits := strconv.AppendInt(number[:0], int64(n), 10)
	_, _ = out.WriteString(head)
	_, _ = out.Write(digits)
	_, _ = out.WriteString(`,"text":"`)
	for range 200 - len(head) - len(digits) - len(`,"text":"`) - len(tail) {
		_ = out.WriteByte('x')
	}
	_, _ = out.WriteString(tail)
}

// benchServer serves the agent until its stdin ends, and says where.
func benchServer(file string) error {
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		return err
	}
	self, _ := os.Executable()
	api, err := New(Config{
		Runtime: set, Agents: agents.Open(agents.Config{Self: self, File: file, Environ: os.Environ()}), NoToken: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if profile := os.Getenv("HTTPAPI_TEST_PROFILE"); profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		_ = pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	server := &http.Server{Handler: api.Loopback(listener.Addr())}
	go func() { _ = server.Serve(listener) }()
	fmt.Println(listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return set.Close()
}

// bench is a server process.
type bench struct {
	b      *testing.B
	url    string
	pid    int
	client *http.Client
}

func startBench(b *testing.B) *bench {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "agents.json")
	data, _ := json.Marshal(map[string]any{"agents": []map[string]any{
		{"id": "bench", "name": "Bench", "command": self, "env": map[string]string{roleVariable: "agent"}},
	}})
	if err := os.WriteFile(file, data, 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=server:"+file)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	s := &bench{b, "http://" + strings.TrimSpace(addr) + "/v1/acp/", cmd.Process.Pid, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	b.Cleanup(func() {
		s.client.CloseIdleConnections()
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func (s *bench) post(path, body string) error {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("status %d: %s", res.StatusCode, answer)
	}
	return err
}

// cpu is what the server process has used, without its children.
func (s *bench) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		s.b.Skip("no /proc")
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// barePipe is the same agent without anything between.
func barePipe(b *testing.B) (io.Writer, *bufio.Reader) {
	b.Helper()
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=agent")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return in, bufio.NewReaderSize(out, 256<<10)
}

func BenchmarkRoundTrip(b *testing.B) {
	b.Run("pipe", func(b *testing.B) {
		in, out := barePipe(b)
		var took []time.Duration
		for b.Loop() {
			begin := time.Now()
			if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"m"}`+"\n"); err != nil {
				b.Fatal(err)
			}
			if _, err := out.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		reportTimes(b, took)
	})
	// The same HTTP between the same processes, and no agent: a message that the server refuses by itself.
	b.Run("http-alone", func(b *testing.B) {
		s := startBench(b)
		if err := s.post("alone?agent=bench", `{"method":"m"}`); err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for b.Loop() {
			begin := time.Now()
			if err := s.post("alone", `{"jsonrpc":"2.0"}`); err == nil {
				b.Fatal("an envelope that is none was taken")
			}
			took = append(took, time.Since(begin))
		}
		reportTimes(b, took)
	})
	b.Run("http", func(b *testing.B) {
		s := startBench(b)
		if err := s.post("rt?agent=bench", `{"method":"m"}`); err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for b.Loop() {
			begin := time.Now()
			if err := s.post("rt", `{"jsonrpc":"2.0","id":1,"method":"m"}`); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		reportTimes(b, took)
	})
}

func reportTimes(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}

func BenchmarkRequests32Clients(b *testing.B) {
	s := startBench(b)
	if err := s.post("many?agent=bench", `{"method":"m"}`); err != nil {
		b.Fatal(err)
	}
	var clients sync.WaitGroup
	each := b.N/32 + 1
	b.ResetTimer()
	for c := range 32 {
		clients.Go(func() {
			for n := range each {
				if err := s.post("many", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, c*each+n)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	b.ReportMetric(float64(32*each)/b.Elapsed().Seconds(), "requests/s")
}

func BenchmarkStream(b *testing.B) {
	for _, how := range []string{"flood", "drip"} {
		b.Run(how+"/pipe", func(b *testing.B) { streamPipe(b, how) })
		b.Run(how+"/http", func(b *testing.B) { streamHTTP(b, how, 1, 0) })
	}
	b.Run("flood/http-4-readers", func(b *testing.B) { streamHTTP(b, "flood", 4, 0) })
	b.Run("flood/http-slow-reader", func(b *testing.B) { streamHTTP(b, "flood", 2, time.Millisecond) })
}

func streamPipe(b *testing.B, how string) {
	b.Helper()
	in, out := barePipe(b)
	b.ResetTimer()
	if _, err := fmt.Fprintf(in, `{"method":"%s:%d"}`+"\n", how, b.N); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		if _, err := out.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

// streamHTTP floods readers; the first of them pauses after each read when it is to be slow.
func streamHTTP(b *testing.B, how string, readers int, pause time.Duration) {
	b.Helper()
	s := startBench(b)
	if err := s.post("st?agent=bench", `{"method":"m"}`); err != nil {
		b.Fatal(err)
	}
	var lost [8]int
	var reading sync.WaitGroup
	for n := range readers {
		res, err := s.client.Get(s.url + "st")
		if err != nil {
			b.Fatal(err)
		}
		wait := pause
		if n > 0 {
			wait = 0
		}
		reading.Go(func() {
			defer res.Body.Close()
			lost[n] = countLost(res.Body, b.N, wait)
		})
	}
	before := s.cpu()
	b.ResetTimer()
	if err := s.post("st", fmt.Sprintf(`{"method":"%s:%d"}`, how, b.N)); err != nil {
		b.Fatal(err)
	}
	reading.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	total := 0
	for _, n := range lost {
		total += n
	}
	b.ReportMetric(float64(total), "lost")
	b.ReportMetric(float64((s.cpu()-before).Microseconds())/float64(b.N), "server-cpu-us/msg")
}

// countLost reads events until the number of the last one and counts those that are missing.
func countLost(body io.Reader, last int, pause time.Duration) int {
	in := bufio.NewReaderSize(body, 256<<10)
	seen := 0
	for next := 1; next <= last; {
		line, err := in.ReadSlice('\n')
		if err != nil {
			break
		}
		if len(line) < 5 || string(line[:4]) != "id: " {
			continue
		}
		next = 0
		for _, c := range line[4 : len(line)-1] {
			next = 10*next + int(c-'0')
		}
		next++
		seen++
		if pause > 0 && seen%1000 == 0 {
			time.Sleep(pause)
		}
	}
	return last - seen
}

func BenchmarkDelete(b *testing.B) {
	s := startBench(b)
	var took []time.Duration
	for b.Loop() {
		if err := s.post("del?agent=bench", `{"id":1,"method":"m"}`); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodDelete, s.url+"del", nil)
		res, err := s.client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		_ = res.Body.Close()
		took = append(took, time.Since(begin))
	}
	reportTimes(b, took)
}
