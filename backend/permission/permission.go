// Package permission judges the options that an agent offers when the agent asks for permission: whether a permission is a choice that
// only a person can make, and how each option is named for a person. The package is pure: it reads no database and asks nobody.
package permission

import (
	"encoding/json"
	"slices"
	"strings"
)

// Option is an option of a permission, as the agent sent it.
type Option struct {
	Name string
	Kind string // AllowOnce and so on, or a word of the agent's own
}

// The kinds of options that the protocol defines.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// Request is the part of a request for permission that the judgement reads.
type Request struct {
	Options  []Option
	ToolKind string
	RawInput json.RawMessage // of the tool call
	Meta     json.RawMessage // _meta of the tool call
}

// IsChoice reports whether a permission asks how to go on rather than whether to go on. Only a person answers such a permission: no rule,
// no flag and no button that allows without a look at the options. A permission is a choice when
//
//   - it is about a plan or carries questions,
//   - it has an option of a kind that the protocol does not know,
//   - several options allow in the same way, and no single option allows once,
//   - it has several options, and none of them rejects,
//   - the name of an option that allows says that it rejects, or that of an option that allows once says that it allows for ever, so that
//     the agent's own words contradict the kind,
//   - one option allows once and another for ever, and the name of the latter speaks neither of leave nor of what lasts: the two are answers,
//     each with a kind of its own.
func IsChoice(r Request) bool {
	count, answers := map[string]int{}, false
	for _, o := range r.Options {
		if _, known := kindWords[o.Kind]; !known || Allows(o.Kind) && contradicts(o) {
			return true
		}
		count[o.Kind]++
		answers = answers || o.Kind == AllowAlways && bare(o.Name) != "" && !names(o, yesWords) && !names(o, lastingWords)
	}
	rejects := count[RejectOnce] + count[RejectAlways]
	switch {
	case count[AllowOnce] > 1, count[AllowOnce] == 0 && count[AllowAlways] > 1, len(r.Options) > 1 && rejects == 0, answers && count[AllowOnce] > 0:
		return true
	}
	return r.ToolKind == "switch_mode" || asksQuestions(r)
}

// Allows reports whether an option of the kind lets the agent go on.
func Allows(kind string) bool { return strings.HasPrefix(kind, "allow") }

// Rejects reports whether an option of the kind turns the agent down.
func Rejects(kind string) bool { return strings.HasPrefix(kind, "reject") }

// asksQuestions reports whether the input of the tool call is a plan or questions, or its _meta says so.
func asksQuestions(r Request) bool {
	var input struct {
		Plan      json.RawMessage `json:"plan"`
		Questions json.RawMessage `json:"questions"`
		Question  json.RawMessage `json:"question"`
		Options   json.RawMessage `json:"options"` // between which the question asks: a tool that only searches has none
	}
	_ = json.Unmarshal(r.RawInput, &input) // an input of another shape has no plan and no questions
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(r.Meta, &meta) // a _meta of another shape says nothing
	var kind string
	_ = json.Unmarshal(meta["qwenInteractionKind"], &kind)
	return input.Plan != nil || input.Questions != nil || input.Question != nil && input.Options != nil || meta["qwenQuestions"] != nil || kind == "user_question" || kind == "plan"
}

// kindWords says, for each kind of option, its default name and its effect.
//
//nolint:gochecknoglobals // a table
var kindWords = map[string]struct{ name, does string }{
	AllowOnce:    {"Allow once", "allows once"},
	AllowAlways:  {"Allow always", "allows always"},
	RejectOnce:   {"Reject once", "rejects once"},
	RejectAlways: {"Reject always", "rejects always"},
}

// Labels returns the names of options for people, in the order of the options. Characters that are not seen are written by their numbers.
// An option without a name is named by its kind. The effect of an option stands beside a name that says the opposite, and beside a name
// that options of different kinds share.
func Labels(options []Option) []string {
	labels := make([]string, len(options))
	for i, o := range options {
		kind := kindWords[o.Kind]
		switch {
		case bare(o.Name) != "":
			labels[i] = Reveal(strings.Join(strings.Fields(o.Name), " "))
		case kind.name != "":
			labels[i] = kind.name + " (no name given by the agent)"
			continue
		default:
			labels[i] = "No name and no known kind given by the agent"
			continue
		}
		alike := slices.ContainsFunc(options, func(other Option) bool { return other.Kind != o.Kind && bare(other.Name) == bare(o.Name) })
		if !alike && !contradicts(o) {
			continue
		}
		if kind.does == "" {
			kind.does = "of a kind that Deskhand does not know"
		}
		labels[i] += " (" + kind.does + ")"
	}
	return labels
}

// bare returns a name as a person reads the name at a glance: without case, without unseen characters, with single blanks.
func bare(name string) string {
	seen := strings.Map(func(r rune) rune {
		if unseen(r) && r != '\u00a0' && r != '\u3000' {
			return -1
		}
		return r
	}, name)
	return strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(seen, "\ufe0f", ""))), " ")
}

// contradicts reports whether the name of an option begins with a word for the opposite of its kind, or says of an option that allows once
// that nobody will be asked again.
func contradicts(o Option) bool {
	name := strings.TrimLeft(bare(o.Name), "✓✔✗✘✕❌✅⛔🚫 \t([{<\"'`*-_#>·•:.0123456789)")
	begins := func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			rest, ok := strings.CutPrefix(name, word)
			return ok && (word[0] >= 0x80 || rest == "" || !letter(rest[0]))
		})
	}
	switch {
	case o.Kind == AllowOnce && names(o, foreverWords):
		return true
	case Allows(o.Kind):
		return begins(noWords)
	case Rejects(o.Kind):
		return begins(yesWords)
	}
	return false
}

// names reports whether the name of an option holds one of the words. A word of ASCII begins where no letter stands before it.
func names(o Option, words []string) bool {
	name := bare(o.Name)
	return slices.ContainsFunc(words, func(word string) bool {
		for rest, at := name, 0; ; {
			n := strings.Index(rest, word)
			if n < 0 {
				return false
			}
			at += n
			end := at + len(word)
			if word[0] >= 0x80 || (at == 0 || !letter(name[at-1])) && (end == len(name) || !letter(name[end])) {
				return true
			}
			rest, at = name[end:], end
		}
	})
}

// letter reports whether a byte continues a word. Every byte of a letter outside ASCII does.
func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 0x80 }

// The words that begin a name which says no or yes. Agents speak English; the words of other languages are those of programs that
// translate their buttons. A word that begins both kinds of names in practice, such as "keep", "skip" or "continue", is in neither list.
//
//nolint:gochecknoglobals // a table
var (
	noWords = []string{
		"reject", "rejected", "deny", "denied", "decline", "disallow", "refuse", "cancel", "abort", "forbid", "block", "no", "nope", "do not", "don't allow", "don’t allow",
		"never allow", "ablehnen", "verweigern", "nein", "abbrechen", "refuser", "rejeter", "non", "annuler", "rechazar", "denegar", "cancelar", "rifiuta", "nega", "annulla",
		"recusar", "negar", "отклонить", "запретить", "нет", "отмена", "拒绝", "拒絕", "取消", "禁止", "否", "いいえ", "拒否", "キャンセル", "거부", "취소", "아니",
	}
	yesWords = []string{
		"allow", "allowed", "accept", "approve", "approved", "yes", "yep", "ok", "okay", "permit", "grant", "authorize", "authorise", "confirm", "proceed", "always allow",
		"erlauben", "zulassen", "ja", "genehmigen", "autoriser", "accepter", "oui", "permitir", "aceptar", "aprobar", "sí", "consenti", "accetta", "aceitar", "sim",
		"разрешить", "принять", "да", "允许", "允許", "接受", "批准", "同意", "确认", "是", "許可", "はい", "承認", "허용", "승인", "예",
	}
	// foreverWords stand in names of options that allow for ever, and in no others.
	foreverWords = []string{
		"always", "forever", "for ever", "don't ask", "don’t ask", "do not ask", "never ask", "without asking", "immer", "toujours", "siempre", "sempre", "всегда", "总是", "始终", "總是",
		"永久", "常に", "항상",
	}
	// lastingWords are further words of such names, which names of options that allow once hold as well.
	lastingWords = append([]string{
		"again", "session", "conversation", "remember", "future", "all", "any", "every", "everything", "trust", "auto", "auto-accept", "auto-approve", "autopilot", "yolo", "permanent",
		"permanently", "project", "workspace", "directory", "folder", "similar", "allowlist", "whitelist", "run", "continue", "go", "keep", "sitzung", "alle", "séance", "tout", "sesión",
		"сессии", "会话", "所有", "全部", "セッション", "세션", "모두",
	}, foreverWords...)
)
