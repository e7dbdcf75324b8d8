package session

import (
	"sync"

	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
)

// alike holds once what agents tell of themselves: it is long, and alike in most of an agent's conversations, which stay loaded after they were
// worked in. Each with its own took 6 kB a conversation.
type alike struct {
	mu       sync.Mutex // protects what is below
	commands map[string][]transcript.Command
	options  map[string][]transcript.ConfigOption
}

// mostAlike bounds what is held for those that come.
const mostAlike = 64

// share replaces the lists of facts by equal ones that are held already. Nobody changes these lists in place.
func (a *alike) share(facts *transcript.Facts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	facts.Commands, facts.Options = once(&a.commands, facts.Commands), once(&a.options, facts.Options)
}

// once gives the list that was held first of those that are equal.
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

// optionOf is the first option of a category by which one of several values is chosen; nil when there is none.
func optionOf(list []transcript.ConfigOption, category string) *transcript.ConfigOption {
	for _, o := range list {
		if o.Category == category && o.Type == "select" {
			return &o
		}
	}
	return nil
}

// judged are the modes of a session in which its agent does not ask for sure.
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
