package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"deskhand/backend"
)

// comparisonWords describes a comparison: a row a member, the files by member, and the answers.
func comparisonWords(r backend.ComparisonResults, answers bool) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "#\tAGENT\tSTATE\tFILES\tLINES\tTIME\tTOKENS\tCOST\tTESTS\tBRANCH") // a Builder never fails
	for i, m := range r.Results {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%d\t+%d -%d\t%s\t%s\n", i+1, plain(m.Name), memberState(r.Comparison, m), len(m.Files), m.Added, m.Removed,
			span(time.Duration(m.Worked)*time.Millisecond), strings.Join(memberCells(m), "\t"))
	}
	_ = w.Flush()
	for _, m := range r.Members {
		switch {
		case m.Problem != "":
			fmt.Fprintf(&b, "%s: %s\n", plain(m.Name), printable(m.Problem))
		case !m.Begun:
			fmt.Fprintf(&b, "%s has not begun; deskhand compare begin begins it\n", plain(m.Name))
		}
	}
	filesByMember(&b, r)
	for _, m := range r.Results {
		if answers && m.Answer != "" {
			fmt.Fprintf(&b, "\n── %s\n%s\n", plain(m.Name), printableLines(m.Answer))
		}
	}
	return b.String()
}

// memberCells returns the tokens, the cost, the state of the tests and the branch of a member, each "-" where it is not known.
func memberCells(m backend.MemberResult) []string {
	cells := []string{"-", "-", "-", "-"}
	if m.Tokens > 0 {
		cells[0] = strconv.FormatInt(m.Tokens, 10)
	}
	if m.Cost != nil {
		cells[1] = fmt.Sprintf("%.2f %s", m.Cost.Amount, plain(m.Cost.Currency))
	}
	if m.Tests != nil {
		cells[2] = m.Tests.State
	}
	if m.Session.Worktree != nil {
		cells[3] = printable(m.Session.Worktree.Branch)
	}
	return cells
}

// memberState describes a member in a word.
func memberState(c backend.Comparison, m backend.MemberResult) string {
	s := m.Session
	switch {
	case s.ID == c.Taken:
		return "taken"
	case s.Waiting > 0:
		return "asks"
	case s.Turn != nil:
		return "works"
	case s.ArchivedAt != nil:
		return "put away"
	case m.Stopped == "cancelled", m.Stopped == "interrupted":
		return "stopped"
	case m.Error != nil, s.Exit != nil && s.Exit.Problem != "" && m.Stopped != "end_turn":
		return "failed"
	}
	return "done"
}

// filesByMember lists the files that differ from the commit, each with who has changed it.
func filesByMember(b *strings.Builder, r backend.ComparisonResults) {
	by := map[string][]string{}
	for i, m := range r.Results {
		for _, f := range m.Files {
			by[f.Path] = append(by[f.Path], fmt.Sprintf("%d: %s +%d -%d", i+1, f.Kind, f.Added, f.Removed))
		}
	}
	names := make([]string, 0, len(by))
	for path := range by {
		names = append(names, path)
	}
	slices.Sort(names)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for i, path := range names {
		if i == 0 {
			_, _ = fmt.Fprintln(w, "\nFILE\tCHANGED BY")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\n", printable(path), strings.Join(by[path], ", "))
	}
	_ = w.Flush()
}

// printableLines is printable for a text of several lines.
func printableLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}
