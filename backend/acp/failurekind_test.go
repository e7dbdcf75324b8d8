package acp_test

import (
	"encoding/json"
	"testing"

	"deskhand/backend/acp"
)

// Errors as agents and the providers behind them write them.
func TestErrorKindIsWhatAPersonCanDo(t *testing.T) {
	for _, test := range []struct {
		response string
		want     acp.FailureKind
	}{
		{`{"code":-32000,"message":"Authentication required"}`, acp.FailureAuth},
		{`{"code":-32603,"message":"Internal error","data":{"details":"API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}"}}`, acp.FailureAuth},
		{`{"code":-32603,"message":"OAuth token has expired. Please run /login"}`, acp.FailureAuth},
		{`{"code":-32603,"message":"Internal error","data":{"details":"API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This request would exceed your account's rate limit.\"}}"}}`, acp.FailureRateLimit},
		{`{"code":-32603,"message":"You've hit your session limit · resets 3pm (UTC)"}`, acp.FailureRateLimit},
		{`{"code":-32603,"message":"You've hit your usage limit. Upgrade, or try again at 2:30 PM."}`, acp.FailureRateLimit},
		{`{"code":-32603,"message":"RESOURCE_EXHAUSTED: You exceeded your current quota"}`, acp.FailureRateLimit},
		{`{"code":-32603,"message":"API Error: 529 overloaded_error"}`, acp.FailureRateLimit},
		{`{"code":-32603,"message":"Your credit balance is too low"}`, acp.FailureRateLimit},
		{`{"code":-32603,"message":"fetch failed","data":{"cause":"connect ECONNREFUSED 127.0.0.1:443"}}`, acp.FailureNetwork},
		{`{"code":-32603,"message":"getaddrinfo ENOTFOUND api.example.com"}`, acp.FailureNetwork},
		{`{"code":-32603,"message":"request timed out"}`, acp.FailureNetwork},
		{`{"code":-32603,"message":"stream error: unexpected status 503 Service Unavailable"}`, acp.FailureNetwork},
		{`{"code":-32603,"message":"prompt is too long: 210000 tokens > 200000 maximum"}`, acp.FailureRefused},
		{`{"code":-32603,"message":"The model gpt-9 does not exist"}`, acp.FailureRefused},
		{`{"code":-32603,"message":"Internal error"}`, acp.FailureAgent},
		{`{"code":-32602,"message":"Invalid params","data":"429"}`, acp.FailureAgent},
		{`{"code":-32603,"message":"Cannot read properties of undefined (reading 'map')"}`, acp.FailureAgent},
	} {
		var e acp.Error
		if err := json.Unmarshal([]byte(test.response), &e); err != nil {
			t.Fatal(err)
		}
		if got := e.Kind(); got != test.want {
			t.Errorf("Kind of %s: got %q, want %q", test.response, got, test.want)
		}
	}
}
