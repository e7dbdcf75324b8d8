package usage

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/transcript"
)

// WriteCSV writes a report as RFC 4180 has it: a line with the names of the columns, and a line for each row. Each currency has a column of
// its own. A text that a spreadsheet would take for a formula begins with an apostrophe.
func (r TallyReport) WriteCSV(w io.Writer) error {
	var currencies []string
	for _, c := range r.Total.Costs {
		currencies = append(currencies, c.Currency)
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	head := []string{r.By}
	if r.named() {
		head = append(head, "name")
	}
	head = append(head, "turns", "turns without tokens", "seconds", "tokens", "input tokens", "output tokens", "cached tokens read", "cached tokens written", "thought tokens")
	for _, c := range currencies {
		head = append(head, plain(strings.TrimSpace("cost "+c)))
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if err := out.Write(r.line(row, currencies)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// named reports whether the rows have names beside their keys.
func (r TallyReport) named() bool { return r.By == ByAgent || r.By == BySession }

func (r TallyReport) line(row TallyRow, currencies []string) []string {
	line := []string{plain(row.Key)}
	if r.named() {
		name := row.Name
		if row.Deleted > 0 {
			name = "deleted conversations: " + strconv.Itoa(row.Deleted)
		}
		line = append(line, plain(name))
	}
	s, k := row.Sum, row.Sum.Tokens
	line = append(line, strconv.Itoa(s.Turns), strconv.Itoa(s.Untold), strconv.FormatFloat(float64(s.TookMs)/1000, 'f', -1, 64))
	for _, n := range []int64{k.Total, k.Input, k.Output, k.CachedRead, k.CachedWrite, k.Thought} {
		line = append(line, strconv.FormatInt(n, 10))
	}
	for _, currency := range currencies {
		cell := ""
		if i := slices.IndexFunc(s.Costs, func(c transcript.Cost) bool { return c.Currency == currency }); i >= 0 {
			cell = strconv.FormatFloat(s.Costs[i].Amount, 'f', -1, 64)
		}
		line = append(line, cell)
	}
	return line
}

// plain returns a text that no spreadsheet takes for a formula. Some of them skip spaces and line ends before they look.
func plain(text string) string {
	if first := strings.TrimLeft(text, " \t\r\n\u00a0\ufeff"); first != "" && strings.ContainsRune("=+-@|\uff1d\uff0b\uff0d\uff20", []rune(first)[0]) || strings.HasPrefix(text, "\t") || strings.HasPrefix(text, "\r") {
		return "'" + text
	}
	return text
}
