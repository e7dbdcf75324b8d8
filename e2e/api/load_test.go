package api

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/acp"
)

// reply is an answer whose body is closed at the test's end.
type reply struct {
	status int
	body   io.Reader
}

// ask makes a request with the token.
func ask(t *testing.T, client *http.Client, method, url string, body []byte) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer the-token-of-these-tests")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return reply{res.StatusCode, res.Body}
}

// Eight MiB pass both ways without a byte changed but the white space between tokens on the way to the agent: compared by SHA-256.
func TestEightMiB(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	base, client := serve(t, t.TempDir(), "sum\nbig 8388608\n")
	request := bytes.Replace(bigAnswer(size), []byte(`"result"`), []byte(`"method": "m", "params"`), 1)
	written := append(acp.Compact(nil, request), '\n')
	want := fmt.Sprintf(`{"id":1,"result":"%x"}`, sha256.Sum256(written))
	if got, err := io.ReadAll(ask(t, client, "POST", base+"/v1/acp/a?agent=fake", request).body); err != nil || string(got) != want {
		t.Errorf("%.200s, %v; want %s", got, err, want)
	}
	big := sha256.Sum256(bigAnswer(size))
	got, err := io.ReadAll(ask(t, client, "POST", base+"/v1/acp/a", []byte(`{"id":1,"method":"m"}`)).body)
	if err != nil || len(got) != size || sha256.Sum256(got) != big {
		t.Errorf("answer: %d bytes, %v", len(got), err)
	}
	events := bufio.NewReaderSize(ask(t, client, "GET", base+"/v1/acp/a", nil).body, 1<<20)
	for _, want := range []string{"event: message\n", "id: 2\n"} { // the log of 16 KiB holds the newest alone
		if line, err := events.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%.100q, %v; want %q", line, err, want)
		}
	}
	line, err := events.ReadBytes('\n')
	data, isData := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte("data: "))
	if err != nil || !isData || sha256.Sum256(data) != big {
		t.Errorf("event: %d bytes, %v", len(data), err)
	}
}

// A thousand streams at once have every message in order, through a log that holds a tenth of them, and end with the instance.
func TestThousandStreams(t *testing.T) {
	t.Parallel()
	const streams, messages = 1000, 1000
	base, client := serve(t, t.TempDir(), fmt.Sprintf("< \"begin\"\n< \"go\"\nsay %d\n", messages))
	if res := ask(t, client, "POST", base+"/v1/acp/b?agent=fake", []byte(`{"method":"begin"}`)); res.status != http.StatusAccepted {
		t.Fatal(res.status)
	}
	var readers sync.WaitGroup
	connected := make(chan struct{}, streams)
	read := make(chan error, streams)
	for range streams {
		readers.Go(func() {
			res := ask(t, client, "GET", base+"/v1/acp/b", nil)
			connected <- struct{}{}
			events := bufio.NewScanner(res.body)
			for n := 1; n <= messages; {
				if !events.Scan() {
					read <- fmt.Errorf("the stream ended before %d: %w", n, events.Err())
					return
				}
				if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
					if data != fmt.Sprintf(`{"n":%d}`, n) {
						read <- fmt.Errorf("%s in the place of %d", data, n)
						return
					}
					n++
				}
			}
			read <- nil
			_, _ = io.Copy(io.Discard, res.body) // up to the end of the instance
		})
	}
	for range streams {
		<-connected
	}
	begin := time.Now()
	ask(t, client, "POST", base+"/v1/acp/b", []byte(`{"method":"go"}`))
	for range streams {
		if err := <-read; err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d events in %v", streams*messages, time.Since(begin))
	begin = time.Now()
	if res := ask(t, client, "DELETE", base+"/v1/acp/b", nil); res.status != http.StatusNoContent || time.Since(begin) > 30*time.Second {
		t.Errorf("%d after %v", res.status, time.Since(begin))
	}
	readers.Wait()
}
