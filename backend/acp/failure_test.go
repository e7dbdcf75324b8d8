package acp

import (
	"encoding/json"
	"strings"
	"testing"
)

// A person reads what went wrong wherever the agent has put it: in each form that was seen of agents, or that their libraries can write.
func TestSentenceExplainsError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"code":-32603,"message":"Internal error"}`:                                                                     "Internal error",
		`{"code":-32603,"message":"Internal error","data":null}`:                                                         "Internal error",
		`{"code":-32603,"message":"Internal error","data":{}}`:                                                           "Internal error",
		`{"code":-32603,"message":"Internal error","data":""}`:                                                           "Internal error",
		`{"code":-32603,"message":"Internal error","data":{"details":"the quota is used up"}}`:                           "Internal error: the quota is used up",
		`{"code":-32603,"message":"Internal error","data":"the quota is used up"}`:                                       "Internal error: the quota is used up",
		`{"code":-32603,"message":"Internal error","data":{"message":"the quota is used up"}}`:                           "Internal error: the quota is used up",
		`{"code":-32603,"message":"Internal error","data":{"detail":"the quota is used up"}}`:                            "Internal error: the quota is used up",
		`{"code":-32603,"message":"Internal error","data":{"error":"the quota is used up"}}`:                             "Internal error: the quota is used up",
		`{"code":-32603,"message":"Internal error","data":{"error":{"type":"rate","message":"the quota is used up"}}}`:   "Internal error: the quota is used up",
		`{"code":-32603,"message":"Internal error","data":"{\"error\":{\"message\":\"the quota is used up\"}}"}`:         "Internal error: the quota is used up",
		`{"code":-32603,"message":"Internal error","data":{"details":"{\"type\":\"error\",\"message\":\"the quota\"}"}}`: "Internal error: the quota",
		`{"code":-32603,"message":"Internal error","data":{"details":{"reason":"the quota"}}}`:                           "Internal error: the quota",
		`{"code":-32603,"message":"Internal error","data":["no disk",{"message":"no net"},null,7]}`:                      "Internal error: no disk; no net; 7",
		`{"code":-32603,"message":"Internal error","data":{"errors":[{"message":"no disk"},{"message":"no net"}]}}`:      "Internal error: no disk; no net",
		`{"code":-32603,"message":"Internal error","data":{"message":"the quota","details":"of lighthouse"}}`:            "Internal error: the quota: of lighthouse",
		`{"code":-32603,"message":"Internal error","data":{"message":"Internal error","details":"the quota"}}`:           "Internal error: the quota",
		`{"code":-32603,"message":"Internal error","data":{"details":"Internal error: the quota"}}`:                      "Internal error: the quota",
		`{"code":-32603,"message":"Internal error: the quota","data":{"details":"the quota"}}`:                           "Internal error: the quota",
		`{"code":-32603,"message":"Internal error.","data":{"ErrorMessage":"the quota"}}`:                                "Internal error: the quota",
		`{"code":-32603,"message":"Internal error","data":{"error_description":"the quota"}}`:                            "Internal error: the quota",
		`{"code":-32603,"message":"Internal error","data":{"errorKind":"rate_limit","status":429}}`:                      `Internal error: {"errorKind":"rate_limit","status":429}`,
		`{"code":-32603,"message":"Internal error","data":429}`:                                                          "Internal error: 429",
		`{"code":-32603,"message":"Internal error","data":{"details":"\u001b[31mthe quota\u001b[0m\r\n"}}`:               "Internal error: the quota",
		`{"code":-32603,"message":"Internal error","details":"the quota"}`:                                               "Internal error: the quota",
		`{"code":-32603,"message":"Internal error","data":{"title":"Quota","detail":"used up","status":429}}`:            "Internal error: Quota: used up",
		`{"code":-32603,"message":"{\"error\":{\"message\":\"the quota\"}}"}`:                                            "the quota",
		`{"code":-32603,"message":{"text":"the quota"}}`:                                                                 "the quota",
		`{"code":-32603,"data":{"details":"the quota"}}`:                                                                 "the quota",
		`{"code":-32603,"message":null}`:                                                                                 "error -32603",
		`{"code":"-32603","message":"","data":[]}`:                                                                       "error -32603",
		`{"code":-32603.0}`: "error -32603",
		`"the quota"`:       "the quota",
		`["the quota"]`:     "the quota",
		`{"code":-32603,"message":"Internal error","data":{"details":"\ud83d\ude00 quota"}}`: "Internal error: 😀 quota",
	} {
		var e Error
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Sentence() != want {
			t.Errorf("%s: got %q, %v, want %q", text, e.Sentence(), err, want)
		}
	}
	deep := strings.Repeat(`{"error":`, 5_000) + `"x"` + strings.Repeat("}", 5_000)
	e := Error{Message: "Internal error", Data: json.RawMessage(deep)}
	if got := e.Sentence(); !strings.HasPrefix(got, "Internal error") {
		t.Errorf("Sentence of deeply nested data: got %.100q, want Internal error first", got)
	}
}

func TestWithoutEscapesRemovesTerminalSequences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\nof two lines":              "plain\ttext\nof two lines",
		"\x1b[0;31mred\x1b[0m":                   "red",
		"\x1b]0;title\x07after":                  "after",
		"\x1b]0;title\x1b\\after":                "after",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x07": "link",
		"\x1b[?25l\x1b[2K\rLoading":              "Loading",
		"\x1b(Bascii\x1b7\x1b8\x1b=\x1bc":        "ascii",
		"\x1bP1$r0m\x1b\\after":                  "after",
		"\ufeffmark\x00\x7f":                     "mark",
		"\u009b31mred":                           "red",
		"a\r\nb":                                 "a\nb",
		"\x1b":                                   "",
		"é😀":                                     "é😀",
	} {
		if got := WithoutEscapes(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
