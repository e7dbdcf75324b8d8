//go:build e2e

package agents

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// probeVariable makes the test binary an MCP server on stdio; its value is the answer of the server's tool.
const probeVariable = "DESKHAND_E2E_PROBE"

// The tools of the two MCP servers, and their answers, which occur nowhere else: one answer for each way to name the server.
const (
	stdioTool, stdioWord, stdioConfigWord = "stdio_lighthouse", "kelpfern-stdio", "kelpfern-stdio-config"
	httpTool, httpWord, httpConfigWord    = "http_lighthouse", "kelpfern-http", "kelpfern-http-config"
	probeToken, tokenVariable             = "e2e-probe-token-0123456789", "E2E_PROBE_TOKEN"
)

func probe(tool, word string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "lighthouse", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: tool, Description: "Tells the word of the " + tool + "."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "The word is " + word + "."}}}, nil, nil
		})
	return s
}

// serveProbe serves until stdin ends.
func serveProbe(word string) int {
	if err := probe(stdioTool, word).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		return 1
	}
	return 0
}

// stdioProbe returns the server on stdio in the form of session/new.
func stdioProbe() map[string]any {
	return map[string]any{
		"name": "lamp", "command": os.Args[0], "args": []string{}, "env": []any{map[string]string{"name": probeVariable, "value": stdioWord}},
	}
}

// startHTTPProbe starts the server over HTTP, which requires the token of its header, and returns its URL.
func startHTTPProbe(t *testing.T) string {
	t.Helper()
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if r.URL.Path == "/config" {
			return probe(httpTool, httpConfigWord)
		}
		return probe(httpTool, httpWord)
	}, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+probeToken {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections() // an agent keeps its stream open
		s.Close()
	})
	return s.URL
}

// httpProbe returns the HTTP server in the form of session/new.
func httpProbe(url string) map[string]any {
	return map[string]any{
		"type": "http", "name": "buoy", "url": url, "headers": []any{map[string]string{"name": "Authorization", "value": "Bearer " + probeToken}},
	}
}
