package session

import (
	"sync"

	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
)

// alike shares equal lists of commands and options among conversations. The lists are long and equal in most conversations of an agent, and
// conversations stay loaded after use: separate copies took 6 kB a conversation.
type alike struct {
	mu       sync.Mutex // protects the fields below
	commands map[string][]transcript.Command
	options  map[string][]transcript.ConfigOption
}

// mostAlike is how many lists of a kind are kept for sharing.
const mostAlike = 64

// share replaces the lists of facts by equal lists that are shared already. The lists are never changed in place.
func (a *alike) share(facts *transcript.Facts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	facts.Commands, facts.Options = once(&a.commands, facts.Commands), once(&a.options, facts.Options)
}

// once returns the first list that was held among equal lists.
func once[T any](held *map[string][]T, list []T) []T {
	if len(list) == 0 {
		return list
	}
	key := string(mustJSON(list))
	if first, ok := (*held)[key]; ok {
		return first
	}
	if *held == nil || len(*held) >= mostAlike {
		*held = map[string][]T{}
	}
	(*held)[key] = list
	return list
}

// optionOf returns the first option of a category that chooses one of several values, or nil.
func optionOf(list []transcript.ConfigOption, category string) *transcript.ConfigOption {
	for _, o := range list {
		if o.Category == category && o.Type == "select" {
			return &o
		}
	}
	return nil
}

// judged returns the modes of a session in which its agent is not known to ask.
func judged(modes startmode.Modes, options []transcript.ConfigOption) (list []ModeMark) {
	if o := optionOf(options, transcript.ModeCategory); o != nil {
		for _, ch := range o.Choices {
			if j := modes.Judge(ch.Value); j != startmode.Asks {
				list = append(list, ModeMark{ch.Value, j})
			}
		}
	}
	return list
}
