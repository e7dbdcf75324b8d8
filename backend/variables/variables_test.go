package variables_test

import (
	"slices"
	"strings"
	"testing"

	"deskhand/backend/variables"
)

func lookup(name string) (string, bool) {
	value, ok := map[string]string{"A": "one", "EMPTY": "", "B2": "${A}", "_x": "$"}[name]
	return value, ok
}

func TestFillReplacesPlaceholders(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"plain $A ${ } $ {A}":      "plain $A ${ } $ {A}",
		"${A}":                     "one",
		"${env:A}":                 "one",
		"{env:A}":                  "one",
		"Bearer ${A}!":             "Bearer one!",
		"${A}${A}":                 "oneone",
		"${NONE:-docs}":            "docs",
		"${env:NONE:-docs}":        "docs",
		"${NONE:-}":                "",
		"${EMPTY}":                 "",
		"${EMPTY:-docs}":           "docs",
		"${A:-docs}":               "one",
		"${NONE:-${A}/x}":          "one/x",
		"${NONE:-a:-b}":            "a:-b",
		"${NONE:-https://x/?a=b}":  "https://x/?a=b",
		"${B2}":                    "${A}",
		"${_x}{A}":                 "${A}",
		"${NONE-docs} ${A-docs}":   "docs one",
		"${EMPTY-docs}":            "",
		"${NONE-${A}/x}":           "one/x",
		"${env:NONE-docs}":         "docs",
		"${A+x} ${A?x} ${A:=x}":    "${A+x} ${A?x} ${A:=x}",
		"`${a.b}` ${a[0]} ${a()}":  "`${a.b}` ${a[0]} ${a()}",
		"$${A}":                    "${A}",
		"$$${A}":                   "$${A}",
		"$$ $${ $$A":               "$$ $${ $$A",
		"pa$$word":                 "pa$$word",
		"$${NONE:-x}y":             "${NONE:-x}y",
		"${A%e} ${#A} ${1} ${A:1}": "${A%e} ${#A} ${1} ${A:1}",
		"${NONE:-open":             "${NONE:-open",
		"${A":                      "${A",
		"$":                        "$",
		"ü${A}漢":                   "üone漢",
	} {
		if got := variables.Fill(text, lookup); got.Text != want || !got.OK() {
			t.Errorf("Fill(%q): got %q, missing %v, foreign %v; want %q and none", text, got.Text, got.Missing, got.Foreign, want)
		}
	}
}

func TestFillReportsMissingVariables(t *testing.T) {
	for text, want := range map[string][2]string{
		"${NONE}":                       {"NONE", ""},
		"a ${env:NONE} {env:X} ${NONE}": {"NONE,X", ""},
		"${NONE:-${OTHER}}":             {"OTHER", ""},
		"Bearer ${input:token}":         {"", "${input:token}"},
		"{file:~/key} ${file:/a}":       {"", "{file:~/key},${file:/a}"},
		"${env:not a name}":             {"", "${env:not a name}"},
		"${localEnv:A} ${ENV:A}":        {"", "${localEnv:A},${ENV:A}"},
		"${ A } ${A }":                  {"", "${ A },${A }"},
		"${secrets.A} ${env.A}":         {"", "${secrets.A},${env.A}"},
		"Bearer ${{ secrets.A }}":       {"", "${{ secrets.A }}"},
		"${NONE-${OTHER}}":              {"OTHER", ""},
	} {
		got := variables.Fill(text, lookup)
		if missing, foreign := strings.Join(got.Missing, ","), strings.Join(got.Foreign, ","); missing != want[0] || foreign != want[1] || got.OK() {
			t.Errorf("Fill(%q): got missing %q, foreign %q; want %q, %q", text, missing, foreign, want[0], want[1])
		}
	}
	if got := variables.Fill("${A} ${NONE:-${EMPTY}} $${X}", lookup).Names; !slices.Equal(got, []string{"A", "NONE", "EMPTY"}) {
		t.Errorf("names: got %v, want [A NONE EMPTY]", got)
	}
	deep := strings.Repeat("${NONE:-", 10_000) + strings.Repeat("}", 10_000)
	if got := variables.Fill(deep, lookup); len(got.Text) > len(deep) {
		t.Errorf("10,000 defaults within each other: got %d bytes, want at most %d", len(got.Text), len(deep))
	}
}
